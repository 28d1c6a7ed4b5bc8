// $(NAME) references in commands, arguments, values of variables and subPathExpr.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace keelson::kubelet {

// "$(NAME)" becomes lookup(NAME); a name that `lookup` does not know stays as it is. "$$" is one "$",
// so "$$(NAME)" is the text "$(NAME)". `unknown` (may be null) gets the first unknown name.
std::string Expand(std::string_view text,
                   const std::function<std::optional<std::string>(const std::string&)>& lookup,
                   std::string* unknown = nullptr);

}  // namespace keelson::kubelet
