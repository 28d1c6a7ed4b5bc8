#include "lib/crypto/tls_names.h"

#include <algorithm>
#include <cctype>

namespace keelson::crypto {
namespace {

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// The parts, without space around them.
std::vector<std::string> Split(std::string_view text, char by) {
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(by, begin), text.size());
    out.emplace_back(Trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return out;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  while (!out.empty() && out.back() == '.') out.pop_back();
  return out;
}

int FindExactly(const std::vector<std::vector<std::string>>& lists, const std::string& name) {
  for (size_t i = 0; i < lists.size(); ++i) {
    for (const std::string& one : lists[i]) {
      if (Lower(one) == name) return static_cast<int>(i);
    }
  }
  return -1;
}

}  // namespace

Result<TlsServerOptions::Named> ParseNamedCertificate(std::string_view text) {
  TlsServerOptions::Named out;
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    out.names = Split(text.substr(colon + 1), ',');
    std::erase(out.names, "");
    if (out.names.empty()) return Error(Code::kInvalid, "empty names list is not allowed");
  }
  const std::vector<std::string> files = Split(text.substr(0, colon), ',');
  if (files.size() != 2 || files[0].empty() || files[1].empty())
    return Error(Code::kInvalid, "expected comma separated certificate and key file paths");
  out.certificate_file = files[0];
  out.key_file = files[1];
  return out;
}

int FindName(const std::vector<std::vector<std::string>>& lists, std::string_view name) {
  const std::string wanted = Lower(name);
  if (wanted.empty()) return -1;
  if (int found = FindExactly(lists, wanted); found >= 0) return found;
  return FindExactly(lists, "*" + wanted.substr(std::min(wanted.find('.'), wanted.size())));
}

}  // namespace keelson::crypto
