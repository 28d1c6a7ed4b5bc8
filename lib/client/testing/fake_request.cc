#include "lib/client/testing/fake_request.h"

#include <algorithm>
#include <vector>

#include "lib/api/meta.h"
#include "lib/base/percent.h"
#include "lib/base/text.h"

namespace keelson::client {

Result<FakeRequest> FakeRequest::Parse(std::string_view target,
                                       const std::vector<const api::ResourceInfo*>& more) {
  const Error not_found(Code::kNotFound, "the server could not find the requested resource");
  FakeRequest request;
  size_t question = std::min(target.find('?'), target.size());
  for (std::string_view pair : SplitWords(target.substr(std::min(question + 1, target.size())), "&")) {
    size_t equals = std::min(pair.find('='), pair.size());
    request.query[QueryDecode(pair.substr(0, equals))] =
        equals < pair.size() ? QueryDecode(pair.substr(equals + 1)) : std::string();
  }
  std::vector<std::string> parts;
  for (std::string_view part : SplitWords(target.substr(0, question), "/")) {
    parts.push_back(QueryDecode(part));
  }

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
  const bool served = std::any_of(more.begin(), more.end(), [&](const api::ResourceInfo* row) {
    return row->group == group && row->version == version && row->resource == parts[0];
  });
  if (served) {
    // All versions are one resource: the first row stands for it.
    request.info = *std::find_if(more.begin(), more.end(), [&](const api::ResourceInfo* row) {
      return row->group == group && row->resource == parts[0];
    });
  }
  if (!request.info || parts.size() > 3) return not_found;
  if (parts.size() > 1) request.name = parts[1];
  if (parts.size() > 2) request.subresource = parts[2];
  return request;
}

std::string FakeRequest::Key() const { return api::KeyOf(info->namespaced ? ns : "", name); }

}  // namespace keelson::client
