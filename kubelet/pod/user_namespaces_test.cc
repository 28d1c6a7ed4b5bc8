#include "kubelet/pod/user_namespaces.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

TEST(UserNamespaces, EachPodHasItsOwnIds) {
  char name[] = "/tmp/userns_test.XXXXXX";
  Paths paths;
  paths.root = ::mkdtemp(name);
  auto pod = [&](const std::string& uid, bool own) {
    corev1::Pod out;
    out.mutable_metadata()->set_uid(uid);
    if (own) out.mutable_spec()->set_host_users(false);
    EXPECT_TRUE(MakeDirs(paths.Pod(uid)));
    return out;
  };
  {
    UserNamespaces namespaces(paths);
    EXPECT_FALSE(*namespaces.Get(pod("plain", false)));
    EXPECT_EQ(**namespaces.Get(pod("a", true)), (cri::IdMapping{65536, 0, 65536}));
    EXPECT_EQ(**namespaces.Get(pod("b", true)), (cri::IdMapping{131072, 0, 65536}));
    EXPECT_EQ(**namespaces.Get(pod("a", true)), (cri::IdMapping{65536, 0, 65536})) << "the same again";
    ASSERT_TRUE(RemoveTree(paths.Pod("a")));
    namespaces.Forget("a");
    EXPECT_EQ((*namespaces.Get(pod("c", true)))->host_id, 65536u) << "free again";
  }
  UserNamespaces restarted(paths);
  EXPECT_EQ((*restarted.Get(pod("d", true)))->host_id, 196608u);
  EXPECT_EQ((*restarted.Get(pod("b", true)))->host_id, 131072u) << "as written down";
  UserNamespaces wider(paths, 4 * 65536);  // a, c: 65536; b: 131072; d: 196608
  EXPECT_EQ(**wider.Get(pod("f", true)), (cri::IdMapping{262144, 0, 262144}));
  EXPECT_EQ((*wider.Get(pod("b", true)))->length, 65536u) << "as it was made";
  wider.Forget("c");
  EXPECT_EQ((*wider.Get(pod("g", true)))->host_id, 524288u) << "what is free at the begin is too little";
  ASSERT_TRUE(WriteFile(paths.Pod("b") + "/userns", "junk"));
  UserNamespaces broken(paths);
  EXPECT_FALSE(broken.Get(pod("e", true))) << "better none than one that is in use";
  ASSERT_TRUE(RemoveTree(paths.root));
}

}  // namespace
}  // namespace keelson::kubelet
