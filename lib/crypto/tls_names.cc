#include "lib/crypto/tls_names.h"

#include <algorithm>

#include "lib/base/text.h"

namespace keelson::crypto {
namespace {

// The parts, without space around them.
std::vector<std::string> Parts(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view part : Split(text, ',')) out.emplace_back(Trim(part));
  return out;
}

std::string Canonical(std::string_view name) { return Lower(TrimRight(name, ".")); }

int FindExactly(const std::vector<std::vector<std::string>>& lists, const std::string& name) {
  for (size_t i = 0; i < lists.size(); ++i) {
    for (const std::string& one : lists[i]) {
      if (Canonical(one) == name) return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace

Result<TlsServerOptions::Named> ParseNamedCertificate(std::string_view text) {
  TlsServerOptions::Named out;
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    out.names = Parts(text.substr(colon + 1));
    std::erase(out.names, "");
    if (out.names.empty()) return Error(Code::kInvalid, "empty names list is not allowed");
  }
  const std::vector<std::string> files = Parts(text.substr(0, colon));
  if (files.size() != 2 || files[0].empty() || files[1].empty()) {
    return Error(Code::kInvalid, "expected comma separated certificate and key file paths");
  }
  out.certificate_file = files[0];
  out.key_file = files[1];
  return out;
}

int FindName(const std::vector<std::vector<std::string>>& lists, std::string_view name) {
  const std::string wanted = Canonical(name);
  if (wanted.empty()) return -1;
  if (int found = FindExactly(lists, wanted); found >= 0) return found;
  return FindExactly(lists, "*" + wanted.substr(std::min(wanted.find('.'), wanted.size())));
}

}  // namespace keelson::crypto
