#include "kubelet/container/container_hash.h"

#include <gtest/gtest.h>

namespace keelson::kubelet {
namespace {

corev1::Container Named(const std::string& name, const std::string& image) {
  corev1::Container out;
  out.set_name(name);
  out.set_image(image);
  return out;
}

TEST(ContainerHash, IsUpstreams) {
  const struct {
    const char *image, *name, *hash;
  } cases[] = {
      {"registry.k8s.io/pause:3.10.2", "c", "d7e0a3c"},
      {"registry.k8s.io/kube-apiserver:v1.36.2", "kube-apiserver", "fcc274bb"},
      {"busybox", "main", "b34e1a14"},
      {"", "", "edd67cc4"},
      {"a<b>&c", "x", "8d3d6ea6"},
      {"\u2028\u2029\u00e9", "q\"\\", "7a09d4d9"},
      {"\n\t\x01\x7f", "n", "2c0bd841"},
  };
  for (const auto& c : cases) EXPECT_EQ(ContainerHash(Named(c.name, c.image)), c.hash) << c.image;
}

TEST(ContainerHash, DependsOnNameAndImageAlone) {
  corev1::Container container = Named("c", "registry.k8s.io/pause:3.10.2");
  container.add_args("x");
  container.add_env()->set_name("A");
  EXPECT_EQ(ContainerHash(container), "d7e0a3c");
}

TEST(ContainerHash, ContainersOfEarlierKubeletsAreTakenOver) {
  const struct {
    const char* hash;
    bool made_from;
  } cases[] = {{"d7e0a3c", true},
               {"2340cf721d222946", true},  // 64 bit, of earlier kubelets
               {"d7e0a3d", false},
               {"af63dc4c8601ec8c", false}};
  for (const auto& c : cases) {
    EXPECT_EQ(IsMadeFrom(Named("c", "registry.k8s.io/pause:3.10.2"), c.hash), c.made_from) << c.hash;
  }
}

}  // namespace
}  // namespace keelson::kubelet
