// A plugin of clang-tidy: checks look at the declarations of this tree's own files only. Without it they walk through all
// that the headers of the system and of generated code declare, which is most of what clang-tidy takes.
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendPluginRegistry.h>

#include <memory>
#include <string>
#include <vector>

namespace {

class Scope : public clang::ASTConsumer {
 public:
  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    for (clang::Decl* declaration : group) {
      if (clang::isa<clang::TranslationUnitDecl>(declaration->getLexicalDeclContext()) &&
          IsOurs(*declaration)) {
        ours_.push_back(declaration);
      }
    }
    return true;
  }

  void HandleTranslationUnit(clang::ASTContext& context) override { context.setTraversalScope(ours_); }

 private:
  static bool IsOurs(const clang::Decl& declaration) {
    const clang::SourceManager& sources = declaration.getASTContext().getSourceManager();
    return !sources.isInSystemHeader(sources.getExpansionLoc(declaration.getLocation()));
  }

  std::vector<clang::Decl*> ours_;
};

class ScopeAction : public clang::PluginASTAction {
 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&, llvm::StringRef) override {
    return std::make_unique<Scope>();
  }
  bool ParseArgs(const clang::CompilerInstance&, const std::vector<std::string>&) override { return true; }
  ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<ScopeAction> kRegistered("keelson-scope",
                                                                  "declarations of this tree only");

}  // namespace
