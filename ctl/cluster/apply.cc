#include "ctl/cluster/apply.h"

#include <boost/json.hpp>

#include "lib/api/scheme.h"
#include "lib/base/pause.h"
#include "lib/client/request.h"

namespace keelson::ctl {

namespace json = boost::json;

namespace {

constexpr std::chrono::milliseconds kRetry{200};
constexpr std::chrono::seconds kOneTry{30};

std::string Text(const json::object& object, std::string_view field) {
  const json::value* found = object.if_contains(field);
  return found && found->is_string() ? std::string(found->get_string()) : "";
}

struct Named {
  const api::ResourceInfo* resource;
  std::string ns, name;
};

Named NameOf(const json::object& object) {
  const auto [group, version] = api::SplitApiVersion(Text(object, "apiVersion"));
  const json::object& metadata = object.at("metadata").as_object();
  return {api::FindKind(group, version, Text(object, "kind")), Text(metadata, "namespace"),
          Text(metadata, "name")};
}

Result<> Send(const client::RestClient& api, const char* method, std::string target,
              const json::object& object) {
  client::ApiRequest request;
  request.method = method;
  request.target = std::move(target);
  request.content_type = request.accept = "application/json";
  request.body = json::serialize(object);
  if (auto answer = client::Answered(api.transport(), request, kOneTry, {}); !answer) return answer.error();
  return {};
}

// A Service that exists would first be refused for its address, which is taken: so the server is asked before.
Result<bool> IsThere(const client::RestClient& api, const Named& named) {
  client::ApiRequest request;
  request.target = client::ResourcePath(*named.resource, named.ns, named.name, "");
  request.accept = "application/json";
  const auto answer = client::Answered(api.transport(), request, kOneTry, {});
  if (answer) return true;
  if (answer.error().Is(Code::kNotFound)) return false;
  return answer.error();
}

Result<> TryOnce(const client::RestClient& api, const WantedObject& wanted, const Named& named) {
  if (wanted.existing == WantedObject::Existing::kKept) {
    KEELSON_ASSIGN_OR_RETURN(const bool there, IsThere(api, named));
    if (there) return {};
  }
  auto created = Send(api, "POST", client::ResourcePath(*named.resource, named.ns, "", ""), wanted.object);
  if (created || !created.error().Is(Code::kAlreadyExists)) return created;
  return Send(api, "PUT", client::ResourcePath(*named.resource, named.ns, named.name, ""), wanted.object);
}

bool MayPass(const Error& error) {
  return error.Is(Code::kForbidden) || error.Is(Code::kUnavailable) || error.Is(Code::kTimeout) ||
         error.Is(Code::kTooManyRequests) || error.Is(Code::kConflict) || error.Is(Code::kNotFound);
}

}  // namespace

Result<> Apply(const client::RestClient& api, const WantedObject& wanted, std::chrono::seconds patience,
               Clock& clock) {
  const Named named = NameOf(wanted.object);
  if (!named.resource) return Error(Code::kInternal, "no such kind: " + json::serialize(wanted.object));
  const SteadyTime end = clock.SteadyNow() + patience;
  for (;;) {
    const auto done = TryOnce(api, wanted, named);
    if (done) return {};
    if (!MayPass(done.error()) || clock.SteadyNow() >= end) {
      return done.error().Wrap("write " + std::string(named.resource->kind) + " " +
                               (named.ns.empty() ? "" : named.ns + "/") + named.name);
    }
    Pause(clock, kRetry, {});
  }
}

Result<> Apply(const client::RestClient& api, const WantedObjects& wanted, std::chrono::seconds patience,
               Clock& clock) {
  for (const WantedObject& one : wanted) KEELSON_RETURN_IF_ERROR(Apply(api, one, patience, clock));
  return {};
}

void Describe(const WantedObjects& wanted, std::ostream& out) {
  for (const WantedObject& one : wanted) {
    const Named named = NameOf(one.object);
    out << "[dryrun] Would write " << Text(one.object, "kind") << " \""
        << (named.ns.empty() ? "" : named.ns + "/") << named.name << "\"\n";
  }
}

}  // namespace keelson::ctl
