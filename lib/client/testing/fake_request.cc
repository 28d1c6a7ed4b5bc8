#include "lib/client/testing/fake_request.h"

#include <vector>

#include "lib/api/meta.h"

namespace keelson::client {
namespace {

std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

}  // namespace

Result<FakeRequest> FakeRequest::Parse(std::string_view target) {
  const Error not_found(Code::kNotFound, "the server could not find the requested resource");
  FakeRequest request;
  size_t question = std::min(target.find('?'), target.size());
  for (const std::string& pair : Split(target.substr(std::min(question + 1, target.size())), '&')) {
    size_t equals = std::min(pair.find('='), pair.size());
    request.query[Unescape(pair.substr(0, equals))] =
        equals < pair.size() ? Unescape(pair.substr(equals + 1)) : std::string();
  }
  std::vector<std::string> parts = Split(target.substr(0, question), '/');
  for (std::string& part : parts) part = Unescape(part);

  const bool core = !parts.empty() && parts[0] == "api";
  const size_t head = core ? 2 : 3;  // api/v1 or apis/group/version
  if (parts.size() <= head) return not_found;
  std::string group = core ? "" : parts[1], version = parts[head - 1];
  parts.erase(parts.begin(), parts.begin() + static_cast<long>(head));

  // namespaces/x/pods is a collection; namespaces/x/status is a Namespace's subresource.
  if (parts[0] == "namespaces" && parts.size() >= 3 && parts[2] != "status" && parts[2] != "finalize") {
    request.ns = parts[1];
    parts.erase(parts.begin(), parts.begin() + 2);
  }
  request.info = api::FindResource(group, version, parts[0]);
  if (!request.info || parts.size() > 3) return not_found;
  if (parts.size() > 1) request.name = parts[1];
  if (parts.size() > 2) request.subresource = parts[2];
  return request;
}

std::string FakeRequest::Key() const { return api::KeyOf(info->namespaced ? ns : "", name); }

}  // namespace keelson::client
