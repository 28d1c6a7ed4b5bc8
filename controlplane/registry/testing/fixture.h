// A registry on a real etcd, for its tests.
#pragma once

#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "controlplane/etcd/client.h"
#include "controlplane/etcd/testing/test_etcd.h"
#include "controlplane/registry/registry.h"
#include "controlplane/storage/store.h"
#include "lib/api/codec/codec.h"
#include "lib/api/meta.h"

namespace keelson::registry {

template <typename T>
const ResourceInfo& Row() {
  return api::ResourceOf<T>();
}
inline const ResourceInfo& Row(std::string_view group, std::string_view resource) {
  return *api::FindResource(group, "v1", resource);
}

// A store and a registry on an etcd, like those of one control plane.
class Plane {
 public:
  explicit Plane(etcd::TestEtcd& etcd, Config config = {})
      : client_(std::make_shared<etcd::Client>(etcd.supervisor().client_options())), store_(client_, {}) {
    std::promise<void> ready;
    thread_ = std::jthread([&](std::stop_token stop) { (void)store_.Run(stop, [&] { ready.set_value(); }); });
    ready.get_future().wait();
    registry_ = std::make_unique<Registry>(store_, std::move(config));
    EXPECT_TRUE(registry_->Start({}));
  }
  ~Plane() { StopFollowing(); }
  // From now on the caches stay as they are, like those of a server that etcd's watch does not reach.
  void StopFollowing() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
  }
  Registry& operator*() { return *registry_; }
  Registry* operator->() { return registry_.get(); }
  etcd::Client& client() { return *client_; }

 private:
  std::shared_ptr<etcd::Client> client_;
  storage::Store store_;
  std::unique_ptr<Registry> registry_;
  std::jthread thread_;
};

class RegistryTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!etcd::TestEtcd::Available()) GTEST_SKIP() << "no etcd in PATH";
    etcd_ = std::make_unique<etcd::TestEtcd>();
    plane_ = std::make_unique<Plane>(*etcd_);
    corev1::Namespace ns;
    ns.mutable_metadata()->set_name("default");
    ASSERT_TRUE(Create(ns, ""));
  }

  template <typename T>
  Result<T> As(Result<Written> written) {
    if (!written) return written.error();
    return static_cast<const T&>(*written->object->Decode());
  }
  template <typename T>
  Result<T> Create(const T& object, std::string_view ns = "default", const WriteOptions& options = {}) {
    return As<T>((*plane_)->Create(Row<T>(), ns, "", std::make_unique<T>(object), options));
  }
  template <typename T>
  Result<T> Update(const T& object, const ResourceInfo* row = nullptr) {
    const metav1::ObjectMeta& meta = object.metadata();
    return As<T>((*plane_)->Update(row ? *row : Row<T>(), meta.namespace_(), meta.name(),
                                   std::make_unique<T>(object), {}));
  }
  template <typename T>
  Result<T> Get(std::string_view name, std::string_view ns = "default") {
    Result<ObjectPtr> object = (*plane_)->Get(Row<T>(), ns, name);
    if (!object) return object.error();
    return static_cast<const T&>(*(*object)->Decode());
  }
  template <typename T>
  Result<T> Patch(std::string_view name, PatchType type, std::string_view patch,
                  const WriteOptions& options = {}) {
    return As<T>((*plane_)->Patch(Row<T>(), "default", name, type, patch, options));
  }
  Result<Deleted> Delete(const ResourceInfo& info, std::string_view name, metav1::DeleteOptions options = {},
                         std::string_view ns = "default") {
    return (*plane_)->Delete(info, ns, name, options, {});
  }

  static corev1::ConfigMap ConfigMap(const std::string& name) {
    corev1::ConfigMap map;
    map.mutable_metadata()->set_name(name);
    (*map.mutable_data())["a"] = "1";
    return map;
  }
  static corev1::Pod Pod(const std::string& name) {
    corev1::Pod pod;
    pod.mutable_metadata()->set_name(name);
    auto* container = pod.mutable_spec()->add_containers();
    container->set_name("c");
    container->set_image("busybox");
    return pod;
  }
  static appsv1::Deployment Deployment(const std::string& name) {
    appsv1::Deployment deployment;
    deployment.mutable_metadata()->set_name(name);
    (*deployment.mutable_spec()->mutable_selector()->mutable_match_labels())["app"] = name;
    auto& pod = *deployment.mutable_spec()->mutable_template_();
    (*pod.mutable_metadata()->mutable_labels())["app"] = name;
    auto* container = pod.mutable_spec()->add_containers();
    container->set_name("c");
    container->set_image("busybox");
    return deployment;
  }
  static corev1::Service Service(const std::string& name) {
    corev1::Service service;
    service.mutable_metadata()->set_name(name);
    (*service.mutable_spec()->mutable_selector())["app"] = name;
    service.mutable_spec()->add_ports()->set_port(80);
    return service;
  }

  std::unique_ptr<etcd::TestEtcd> etcd_;
  std::unique_ptr<Plane> plane_;
};

}  // namespace keelson::registry
