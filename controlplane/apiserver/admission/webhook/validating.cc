// ValidatingAdmissionWebhook: asks all matching webhooks at once whether a request may go on.
#include <list>

#include <fmt/format.h>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/webhook/dispatch.h"
#include "controlplane/apiserver/admission/webhook/hook_source.h"
#include "lib/api/codec/codec.h"

namespace keelson::apiserver {
namespace {

using namespace webhook;  // used by this plugin only

// The objects of a request in one version, in JSON, for all webhooks that want it.
struct Encoded {
  const api::ResourceInfo* row;
  std::string object, old_object;
};

class ValidatingWebhooks : public AdmissionPlugin {
 public:
  ValidatingWebhooks(storage::Store& store, const ServiceResolver& services,
                     std::shared_ptr<const Authorizer> authorizer)
      : store_(store),
        source_(store, HookKind::kValidating),
        client_(services, std::string(kCallPrefix)),
        authorizer_(std::move(authorizer)) {}
  std::string_view name() const override { return "ValidatingAdmissionWebhook"; }
  bool HandlesConnect() const override { return true; }

  Result<> Validate(const AdmissionRequest& request) override {
    if (IsAdmissionConfiguration(request)) return {};
    const auto hooks = source_.Current();
    if (hooks->empty()) return {};
    VersionedObject versions(request);
    std::vector<std::pair<const Hook*, const api::ResourceInfo*>> matching;
    for (const auto& hook : *hooks) {
      KEELSON_ASSIGN_OR_RETURN(const api::ResourceInfo* row, RowFor(*hook, request, store_));
      if (!row) continue;
      KEELSON_ASSIGN_OR_RETURN(const bool match,
                               ConditionsMatch(*hook, request, *row, versions, *authorizer_));
      if (match) matching.emplace_back(hook.get(), row);
    }
    if (matching.empty()) return {};
    if (SteadyTime::clock::now() >= request.deadline) {
      return Error(Code::kTimeout, "Timeout: request did not complete within requested timeout");
    }
    std::list<Encoded> encoded;
    std::list<Invocation> calls;
    for (const auto& [hook, row] : matching) {
      KEELSON_ASSIGN_OR_RETURN(const Encoded* objects, Encode(*row, versions, encoded));
      calls.emplace_back(*hook, request, *row, objects->object, objects->old_object, client_, false);
    }
    std::optional<Error> first;
    int index = 0;
    std::optional<metav1::Status> denial;
    for (Invocation& call : calls) {
      Result<> admitted =
          call.Conclude(call.Await(), fmt::format("failed-open.validating.webhook.admission.k8s.io/"
                                                  "round_0_index_{}",
                                                  index++));
      if (admitted || first) continue;
      first = admitted.error();
      if (request.notes) denial = request.notes->denial;
    }
    if (!first) return {};
    if (request.notes) request.notes->denial = std::move(denial);
    return *first;
  }

 private:
  static Result<const Encoded*> Encode(const api::ResourceInfo& row, VersionedObject& versions,
                                       std::list<Encoded>& known) {
    for (const Encoded& one : known) {
      if (one.row == &row) return &one;
    }
    Encoded added{&row, "", ""};
    KEELSON_ASSIGN_OR_RETURN(const api::Message* object, versions.Object(row));
    if (object) added.object = api::EncodeJson(*object, row.Gvk());
    KEELSON_ASSIGN_OR_RETURN(const api::Message* old_object, versions.OldObject(row));
    if (old_object) added.old_object = api::EncodeJson(*old_object, row.Gvk());
    return &known.emplace_back(std::move(added));
  }

  storage::Store& store_;
  HookSource source_;
  HookClient client_;
  const std::shared_ptr<const Authorizer> authorizer_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewValidatingWebhooks(storage::Store& store, const ServiceResolver& services,
                                                       std::shared_ptr<const Authorizer> authorizer) {
  return std::make_unique<ValidatingWebhooks>(store, services, std::move(authorizer));
}

}  // namespace keelson::apiserver
