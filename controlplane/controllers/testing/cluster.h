// A cluster in a test: FakeApi, informers that follow it, and workers replaced by Drain(), which runs
// reconciles one after another until nothing is left to do. No time passes but by clock.Advance().
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/testing/held_api.h"
#include "lib/client/testing/fake_api.h"

namespace keelson::controllers {

class TestCluster {
 public:
  TestCluster();
  ~TestCluster();

  // A controller, which lives until the informers have ended. The test fails when it asks the API for what
  // its account may not do.
  template <typename T, typename... Args>
  T& Make(Args&&... args) {
    auto held = std::make_shared<HeldApi>(fake, [this](const std::string& what) { Deny(what); });
    T& made = Own(
        std::make_shared<T>(client::RestClient(held), informers, events, clock, std::forward<Args>(args)...));
    held->ActAs(AccountOfQueue(made.name()));
    return made;
  }
  template <typename T>
  T& Own(std::shared_ptr<T> object) {
    owned_.push_back(object);
    return *object;
  }
  // Starts the informers that the controllers have asked for; call after constructing these.
  void Start();
  // Ends informers and controllers and all that these remember; others may be made and started then.
  void Stop();
  // All informers have handled all that has happened.
  void Settle();
  // Reconciles what is due in the queues, round by round. Conflicts are tried again at once; other errors go
  // to `errors`, and their keys wait for the clock.
  void Drain(const std::vector<Controller*>& controllers);
  void Advance(std::chrono::nanoseconds by, const std::vector<Controller*>& controllers);

  // Plays scheduler and kubelet: binds pods without a node to `node`, gives them an address, and makes them
  // Running and Ready. Returns how many pods it touched. Pods that terminate are finished off.
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
  // "reason: message" of all events so far that were recorded, sorted. Stops the recorder.
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
  std::jthread runner_;
};

corev1::Pod PodNamed(const std::string& name, const std::map<std::string, std::string>& labels = {},
                     const std::string& node = "");
void MakeReady(corev1::Pod& pod, WallTime since);
appsv1::Deployment DeploymentNamed(const std::string& name, int32_t replicas);
corev1::Node NodeNamed(const std::string& name, const char* ready = "True");

}  // namespace keelson::controllers
