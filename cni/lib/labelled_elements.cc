#include "cni/lib/labelled_elements.h"

namespace keelson::cni {
namespace {

constexpr int kAttempts = 10;

}  // namespace

Outcome<std::vector<LabelledElement>> RemoveElements(nft::Kernel& kernel, const nft::Table& table,
                                                     const std::function<bool(std::string_view)>& unwanted) {
  for (int attempt = 1;; ++attempt) {
    KEELSON_ASSIGN_OR_RETURN(auto found, kernel.ReadSets(table));
    std::vector<LabelledElement> out;
    nft::Transaction t(table);
    if (found) {
      for (auto& [name, contents] : found->sets) {
        std::vector<nft::Element> elements;
        for (auto& [key, element] : contents.elements) {
          if (!element.comment.empty() && unwanted(element.comment)) elements.push_back(element);
        }
        for (const nft::Element& element : elements) out.push_back({contents.set, element});
        t.DeleteElements(contents.set, std::move(elements));
      }
    }
    Result<> applied = kernel.Apply(t);
    if (applied) return out;
    // Another plugin has deleted one of them first.
    if (!applied.error().Is(Code::kNotFound) || attempt == kAttempts) return applied.error();
  }
}

}  // namespace keelson::cni
