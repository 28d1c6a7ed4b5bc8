// A cluster for tests: FakeApi, and informers that follow it. Drain() replaces the workers and runs
// reconciles one after another until the queues are empty. Only clock.Advance() moves time.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/testing/rbac_transport.h"
#include "lib/client/discovered_informers.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::controllers {

class TestCluster {
 public:
  TestCluster();
  ~TestCluster();

  // Creates a controller, which lives until the informers stop. The test fails when the controller sends a
  // request that its account's role does not allow.
  template <typename T, typename... Args>
  T& Make(Args&&... args) {
    auto transport = std::make_shared<RbacTransport>(fake, [this](const std::string& what) { Deny(what); });
    T& made = Own(std::make_shared<T>(client::RestClient(transport), informers, events, clock,
                                      std::forward<Args>(args)...));
    transport->ActAs(AccountOfQueue(made.name()));
    return made;
  }
  template <typename T>
  T& Own(std::shared_ptr<T> object) {
    owned_.push_back(object);
    return *object;
  }
  // Informers of custom resources, for controllers that want them. They live in real time.
  client::DiscoveredInformers& discovered();
  // Makes the API serve a custom resource, or other versions of it; no versions: no longer. After Start() this returns
  // when the controllers know.
  void ServeCustom(const client::FakeApi::Custom& custom);
  // Starts the informers that the controllers requested; call after the controllers are created.
  void Start();
  // Stops informers and destroys the controllers. New ones may be created and started afterwards.
  void Stop();
  // Waits until all informers have processed all events.
  void Settle();
  // Reconciles due keys until the queues are empty. Retries conflicts at once. Other errors go to `errors`,
  // and their keys wait for the clock.
  void Drain(const std::vector<Controller*>& controllers);
  void Advance(std::chrono::nanoseconds by, const std::vector<Controller*>& controllers);

  // Acts as scheduler and kubelet: binds pods without a node to `node`, gives them an address, and makes them
  // Running and Ready. Removes terminating pods. Returns the number of pods changed.
  int RunPods(const std::string& node = "n1");

  template <typename T>
  T Get(const std::string& ns, const std::string& name) {
    Result<T> object = api.Get<T>(ns, name);
    if (!object) missing.push_back(name + ": " + object.error().message());
    return object ? *object : T();
  }
  template <typename T>
  std::vector<T> List(const std::string& ns = "") {
    Result<std::vector<T>> items = api.List<T>(ns);
    return items ? *items : std::vector<T>();
  }
  // "reason: message" of all recorded events, sorted. Stops the recorder.
  std::vector<std::string> Events();

  FakeClock clock;
  std::shared_ptr<client::FakeApi> fake = std::make_shared<client::FakeApi>(clock);
  client::RestClient api{fake};
  client::InformerFactory informers{api, clock};
  client::EventRecorder events{api, "test", "", clock};
  std::vector<std::string> errors, missing;

 private:
  void Deny(const std::string& what);

  int next_address_ = 1;
  std::vector<std::shared_ptr<void>> owned_;
  std::unique_ptr<client::DiscoveredInformers> discovered_;
  std::set<std::string> custom_;  // what is served
  std::jthread runner_, discovered_runner_;
};

corev1::Pod PodNamed(const std::string& name, const std::map<std::string, std::string>& labels = {},
                     const std::string& node = "");
void MakeReady(corev1::Pod& pod, WallTime since);
appsv1::Deployment DeploymentNamed(const std::string& name, int32_t replicas);
corev1::Node NodeNamed(const std::string& name, const char* ready = "True");

}  // namespace keelson::controllers
