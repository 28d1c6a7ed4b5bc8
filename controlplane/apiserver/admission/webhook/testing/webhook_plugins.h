// The fixture of tests that send requests through both webhook plugins to a real HTTPS server.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/apiserver/admission/plugins.h"
#include "controlplane/apiserver/admission/testing/object_store.h"
#include "controlplane/apiserver/admission/testing/pod_readers.h"
#include "controlplane/apiserver/admission/webhook/testing/hook_server.h"
#include "lib/api/proto/admissionregistration_v1.pb.h"

namespace keelson::apiserver {

using MutatingConfiguration = api::admissionregistration::v1::MutatingWebhookConfiguration;
using ValidatingConfiguration = api::admissionregistration::v1::ValidatingWebhookConfiguration;

// One webhook; `more` has further members.
struct HookText {
  std::string name, path, more;
  std::string resources = "configmaps";
};

class WebhookPlugins : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    store_ = std::make_unique<ObjectStore>();
    services_ = std::make_unique<ServiceResolver>(store_->get());
    store_->Put<corev1::Namespace>(R"({"metadata":{"name":"ns","labels":{"env":"prod"}}})");
  }

  std::string Client(const std::string& path) const {
    return R"({"url":")" + server_.service().url() + path + R"(","caBundle":")" +
           EncodeBase64(server_.service().ca_pem()) + "\"}";
  }
  std::string Configuration(const std::string& name, const std::vector<HookText>& hooks) const {
    std::string out = R"({"metadata":{"name":")" + name + R"("},"webhooks":[)";
    for (const HookText& hook : hooks) {
      if (out.back() != '[') out += ',';
      out += R"({"name":")" + hook.name +
             R"(","admissionReviewVersions":["v1"],"sideEffects":"None","rules":[{"operations":["*"],
             "apiGroups":["*"],"apiVersions":["*"],"resources":[")" +
             hook.resources + R"("]}])" + hook.more;
      if (hook.more.find("clientConfig") == std::string::npos) {
        out += R"(,"clientConfig":)" + Client(hook.path);
      }
      out += "}";
    }
    return out + "]}";
  }
  void Validating(const std::string& name, const std::vector<HookText>& hooks) {
    store_->Put<ValidatingConfiguration>(Configuration(name, hooks));
  }
  void Mutating(const std::string& name, const std::vector<HookText>& hooks) {
    store_->Put<MutatingConfiguration>(Configuration(name, hooks));
  }

  // One request through a chain of both plugins. Returns the error's message, "" when it is admitted.
  std::string Admit(registry::Operation operation = registry::Operation::kCreate, bool dry_run = false,
                    SteadyTime deadline = SteadyTime::max()) {
    std::vector<std::unique_ptr<AdmissionPlugin>> plugins;
    plugins.push_back(NewMutatingWebhooks(store_->get(), *services_, authorizer_));
    plugins.push_back(NewValidatingWebhooks(store_->get(), *services_, authorizer_));
    const AdmissionChain chain(std::move(plugins));
    notes_ = {};
    const bool deletes = operation == registry::Operation::kDelete;
    AdmissionRequest request{operation,
                             *info_,
                             "ns",
                             "x",
                             deletes ? nullptr : object_.get(),
                             deletes ? object_.get() : nullptr,
                             user_,
                             dry_run,
                             &notes_,
                             "create"};
    request.deadline = deadline;
    Result<> result = chain.Mutate(request);
    if (result) result = chain.Validate(request);
    code_ = result ? 200 : HttpStatus(result.error().code());
    return result ? "" : result.error().message();
  }
  template <typename T>
  void Remove(const std::string& name) {
    storage::Conflict conflict;
    const api::ResourceInfo& info = api::ResourceOf<T>();
    const storage::ObjectPtr object = store_->get().Peek(info, name);
    ASSERT_TRUE(object);
    ASSERT_TRUE(store_->get().Delete(info, name, object->revision(), conflict, {}));
    ASSERT_TRUE(store_->get().Get(info, name, "", {}));
  }
  template <typename T>
  T& Object(std::string_view text) {
    auto object = std::make_unique<T>();
    EXPECT_TRUE(api::DecodeJson(text, *object)) << text;
    T& out = *object;
    object_ = std::move(object);
    info_ = &api::ResourceOf<T>();
    return out;
  }
  corev1::ConfigMap& Map(const std::string& labels = "{}") {
    return Object<corev1::ConfigMap>(R"({"metadata":{"name":"x","namespace":"ns","labels":)" + labels + "}}");
  }

  const User user_{"alice", "", {"dev"}, {}};
  HookServer server_;
  std::unique_ptr<ObjectStore> store_;
  std::unique_ptr<ServiceResolver> services_;
  const std::shared_ptr<const Authorizer> authorizer_ = std::make_shared<PodReaders>();
  std::unique_ptr<api::Message> object_;
  const api::ResourceInfo* info_ = nullptr;
  AdmissionNotes notes_;
  int code_ = 0;
};

}  // namespace keelson::apiserver
