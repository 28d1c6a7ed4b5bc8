// Internal to lib/k8s: the formats uri and email.
#pragma once

#include <string_view>

namespace keelson::k8s {

// Whether Go's url.ParseRequestURI takes it: an absolute URI, or an absolute path.
bool IsRequestUri(std::string_view text);
// Whether Go's mail.ParseAddress takes it: one address of RFC 5322, with or without a name.
bool IsEmailAddress(std::string_view text);

}  // namespace keelson::k8s
