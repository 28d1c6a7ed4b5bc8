// MutatingAdmissionWebhook: calls matching webhooks one after the other; each sees the changes of those
// before. When one has changed the object, webhooks with reinvocationPolicy IfNeeded that came before see it
// once more, after all other plugins have.
#include <set>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/webhook/dispatch.h"
#include "controlplane/apiserver/admission/webhook/hook_source.h"
#include "controlplane/apiserver/admission/webhook/patch.h"
#include "lib/api/codec/codec.h"
#include "lib/k8s/field_error.h"

namespace keelson::apiserver {
namespace {

using namespace webhook;  // used by this plugin only
namespace json = boost::json;

constexpr std::string_view kPlugin = "MutatingAdmissionWebhook";

// What the second run has to know of the first.
struct Rounds {
  std::string output;                           // the object after the last webhook, as bytes
  std::set<std::string, std::less<>> invoked;   // webhooks that want to see later changes
  std::set<std::string, std::less<>> reinvoke;  // those of them for which there were some

  void Changed() {
    reinvoke.merge(invoked);
    invoked.clear();
  }
};

class MutatingWebhooks : public AdmissionPlugin {
 public:
  MutatingWebhooks(storage::Store& store, const ServiceResolver& services,
                   std::shared_ptr<const Authorizer> authorizer)
      : store_(store),
        source_(store, HookKind::kMutating),
        client_(services, std::string(kCallPrefix)),
        authorizer_(std::move(authorizer)) {}
  std::string_view name() const override { return kPlugin; }
  bool HandlesConnect() const override { return true; }

  Result<> Mutate(const AdmissionRequest& request) override {
    if (IsAdmissionConfiguration(request)) return {};
    const auto hooks = source_.Current();
    if (hooks->empty()) return {};
    Rounds& rounds = request.reinvocation->StateOf<Rounds>(kPlugin);
    const bool again = request.reinvocation->again();
    if (again && request.object && api::EncodeRaw(*request.object) != rounds.output) rounds.Changed();
    VersionedObject versions(request);
    for (size_t i = 0; i < hooks->size(); ++i) {
      const Hook& hook = *(*hooks)[i];
      AdmissionRequest now = request;
      now.object = const_cast<api::Message*>(versions.current());  // read only
      KEELSON_ASSIGN_OR_RETURN(const api::ResourceInfo* row, RowFor(hook, now, store_));
      // The second run calls no webhook for the first time.
      if (!row || (again && !rounds.reinvoke.count(hook.uid))) continue;
      KEELSON_ASSIGN_OR_RETURN(const bool match, ConditionsMatch(hook, now, *row, versions, *authorizer_));
      if (!match) continue;
      now.object = const_cast<api::Message*>(versions.current());
      const std::string round = fmt::format("round_{}_index_{}", again ? 1 : 0, i);
      KEELSON_RETURN_IF_ERROR(Call(hook, now, *row, round, versions, rounds));
    }
    KEELSON_RETURN_IF_ERROR(versions.Finish());
    if (request.object) rounds.output = api::EncodeRaw(*request.object);
    return {};
  }

 private:
  Result<> Call(const Hook& hook, const AdmissionRequest& request, const api::ResourceInfo& row,
                const std::string& round, VersionedObject& versions, Rounds& rounds) {
    KEELSON_ASSIGN_OR_RETURN(const api::Message* object, versions.Object(row));
    KEELSON_ASSIGN_OR_RETURN(const api::Message* old_object, versions.OldObject(row));
    const std::string object_json = object ? api::EncodeJson(*object, row.Gvk()) : "";
    const std::string old_json = old_object ? api::EncodeJson(*old_object, row.Gvk()) : "";
    AdmissionRequest shown = request;
    shown.object = const_cast<api::Message*>(object);  // read only
    Invocation call(hook, shown, row, object_json, old_json, client_, true);
    Outcome outcome = call.Await();
    bool changed = false;
    if (outcome.kind == Outcome::Kind::kAllowed && !outcome.answer.patch.empty()) {
      outcome = Patch(hook, request, row, round, object, object_json, std::move(outcome), versions, changed);
    }
    AddNote(request, "mutation.webhook.admission.k8s.io/" + round,
            fmt::format(R"({{"configuration":"{}","webhook":"{}","mutated":{}}})", hook.configuration,
                        hook.name, changed));
    Result<> admitted = call.Conclude(outcome, "failed-open.mutation.webhook.admission.k8s.io/" + round);
    if (changed) {
      rounds.Changed();
      request.reinvocation->Ask();
    }
    if (hook.reinvoke) rounds.invoked.insert(hook.uid);
    return admitted;
  }

  // Applies the patch of an answer.
  static Outcome Patch(const Hook& hook, const AdmissionRequest& request, const api::ResourceInfo& row,
                       const std::string& round, const api::Message* object, std::string_view object_json,
                       Outcome outcome, VersionedObject& versions, bool& changed) {
    Result<json::value> patch = ParsePatch(outcome.answer.patch);
    if (!patch) {
      return CallFailed(hook, "received undecodable patch in webhook response: " + patch.error().message(),
                        HttpStatus(Code::kUnavailable));
    }
    if (patch->get_array().empty()) return outcome;
    auto internal = [](Error error) {
      Outcome failed;
      failed.kind = Outcome::Kind::kInternal;
      failed.code = 0;
      failed.error = std::move(error);
      return failed;
    };
    if (!object) {
      return internal(
          InternalError(fmt::format("admission webhook {} attempted to modify the object, which "
                                    "is not supported for this operation",
                                    k8s::Quote(hook.name))));
    }
    if (outcome.answer.patch_type != "JSONPatch") {
      return CallFailed(hook, fmt::format("unsupported patch type {}", k8s::Quote(outcome.answer.patch_type)),
                        400);
    }
    Result<std::unique_ptr<api::Message>> patched =
        ApplyPatch(*object, object_json, *patch, row, request.notes);
    if (!patched) return internal(patched.error());
    changed = api::EncodeRaw(**patched) != api::EncodeRaw(*object);
    versions.Replace(std::move(*patched));
    if (request.notes) {
      request.notes->body_annotations.emplace(
          "patch.webhook.admission.k8s.io/" + round,
          fmt::format(R"({{"configuration":"{}","webhook":"{}","patch":{},"patchType":"JSONPatch"}})",
                      hook.configuration, hook.name, json::serialize(*patch)));
    }
    return outcome;
  }

  static void AddNote(const AdmissionRequest& request, const std::string& key, std::string value) {
    if (request.notes) request.notes->annotations.emplace(key, std::move(value));
  }

  storage::Store& store_;
  HookSource source_;
  HookClient client_;
  const std::shared_ptr<const Authorizer> authorizer_;
};

}  // namespace

std::unique_ptr<AdmissionPlugin> NewMutatingWebhooks(storage::Store& store, const ServiceResolver& services,
                                                     std::shared_ptr<const Authorizer> authorizer) {
  return std::make_unique<MutatingWebhooks>(store, services, std::move(authorizer));
}

}  // namespace keelson::apiserver
