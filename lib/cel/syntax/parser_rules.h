// The parser's rules, for its files alone: parser.cc has the operators, parser_members.cc what stands between them,
// parser_literals.cc lists, maps, messages and constants.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lib/cel/syntax/ast.h"
#include "lib/cel/syntax/lexer.h"
#include "lib/cel/syntax/parser.h"
#include "lib/cel/syntax/recovery.h"

namespace keelson::cel {

class Parser {
 public:
  // The tree goes to `ast`, problems to `issues`; both outlive the parser, as `options` does.
  Parser(Ast& ast, const SyntaxOptions& options, std::vector<Issue>& issues)
      : ast_(ast), options_(options), issues_(issues), tokens_(Tokenize(ast.source(), issues), issues) {}

  Expr* Run();

 private:
  using Args = std::vector<Expr*>;
  using K = TokenKind;

  // The grammar's rules, each with its own limit of recursion, as upstream counts. A chain of operators of one rule
  // counts as nested.
  enum Rule { kExprRule, kRelationRule, kCalcRule, kMemberRule, kRules };

  // Counts one level of a rule while it lives, and further ones of a chain.
  class Depth {
   public:
    Depth(Parser& parser, Rule rule) : parser_(parser), rule_(rule) { Add(); }
    ~Depth() { parser_.depth_[rule_] -= count_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    bool Add();

   private:
    Parser& parser_;
    Rule rule_;
    int count_ = 0;
  };

  // Tokens that end what encloses the current rule: while it lives, errors are skipped no further.
  class Enclosed {
   public:
    Enclosed(Parser& parser, TokenSet follow) : parser_(parser), before_(parser.follow_) {
      parser.follow_ |= follow;
    }
    ~Enclosed() { parser_.follow_ = before_; }
    Enclosed(const Enclosed&) = delete;
    Enclosed& operator=(const Enclosed&) = delete;

   private:
    Parser& parser_;
    TokenSet before_;
  };

  TokenSet Resume() const { return follow_ | kOperators | Bit(K::kEnd); }
  TokenSet ResumeMember() const { return Resume() | Bit(K::kDot) | Bit(K::kLeftBracket); }

  Expr* ErrorNode() { return ast_.New(ExprKind::kError, tokens_.Peek().position); }

  Expr* Report(uint32_t position, std::string message);
  Expr* Call(uint32_t position, std::string_view function, const Args& args, Expr* target = nullptr);

  Expr* ParseExpr();
  Expr* ParseLogical(std::string_view function);
  Expr* Balance(std::string_view function, const Args& terms, const std::vector<uint32_t>& positions,
                size_t low, size_t high);
  Expr* ParseRelation();
  Expr* ParseSum();
  Expr* ParseProduct(Depth& depth);
  Expr* ParseUnary();

  Expr* ParseMember();
  Expr* ParseSelection(Expr* target);
  std::string_view FieldName(const Token& token);
  Expr* ParseIndex(Expr* target);
  bool ParseArguments(Args& args);
  Expr* ParsePrimary();
  Expr* ParseNested();
  bool AtStruct(size_t ahead) const;
  Expr* ParseName();

  Expr* ParseStruct(bool dot);
  bool TakeQuestion();
  std::span<bool> CopyFlags(const std::vector<bool>& flags);
  Expr* ParseList();
  Expr* ParseMap();
  Expr* ParseLiteral();

  Ast& ast_;
  const SyntaxOptions& options_;
  std::vector<Issue>& issues_;
  TokenStream tokens_;
  TokenSet follow_ = 0;
  int depth_[kRules] = {};
};

}  // namespace keelson::cel
