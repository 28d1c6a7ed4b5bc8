// Volumes, restarts and terminations of pods on a real containerd, runc and kernel.
#include <sys/stat.h>

#include "kubelet/testing/containerd_test.h"
#include "kubelet/testing/loop_device.h"
#include "lib/api/codec/codec.h"

namespace keelson::kubelet {
namespace {

TEST_F(ContainerdTest, VolumesOfAllKinds) {
  ASSERT_TRUE(MakeDirs(dir_ + "/disk/data"));
  ASSERT_EQ(::symlink("/etc", (dir_ + "/disk/out").c_str()), 0);
  corev1::PersistentVolumeClaim claim;
  ASSERT_TRUE(api::DecodeJson(
      R"({"metadata":{"name":"c","namespace":"default"},"spec":{"volumeName":"pv-1"}})", claim));
  claim = *harness_->api().Create(claim);
  corev1::PersistentVolume volume;
  ASSERT_TRUE(api::DecodeJson(R"({"metadata":{"name":"pv-1"},"spec":{"local":{"path":")" + dir_ +
                                  R"(/disk"},"claimRef":{"uid":")" + claim.metadata().uid() + "\"}}}",
                              volume));
  ASSERT_TRUE(harness_->api().Create(volume));
  harness_->Create(R"json({"metadata":{"name":"web"},"spec":{
    "terminationGracePeriodSeconds":1,"securityContext":{"fsGroup":4321},
    "containers":[{"name":"main","image":"busybox:test",
      "command":["sh","-c","trap 'exit 0' TERM; while true; do sleep 0.1; done"],
      "volumeMounts":[{"name":"disk","mountPath":"/disk"},{"name":"disk","mountPath":"/part","subPath":"data"},
        {"name":"disk","mountPath":"/ro","subPath":"data","readOnly":true},
        {"name":"fast","mountPath":"/fast"}]}],
    "volumes":[{"name":"disk","persistentVolumeClaim":{"claimName":"c"}},
               {"name":"fast","emptyDir":{"medium":"Memory","sizeLimit":"1Mi"}}]}})json");
  // It waits for its claim.
  claim.mutable_status()->set_phase("Bound");
  ASSERT_TRUE(harness_->api().UpdateStatus(claim));
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  EXPECT_EQ(Exec("main", {"sh", "-c", "echo hi > /part/x && cat /disk/data/x /ro/x"}), "hi\nhi\n");
  EXPECT_NE(Exec("main", {"sh", "-c", "echo hi > /ro/y || echo refused"}).find("refused"), std::string::npos);
  EXPECT_EQ(ReadFile(dir_ + "/disk/data/x").value_or("none"), "hi\n");
  struct stat info = {};
  ASSERT_EQ(::stat((dir_ + "/disk/data/x").c_str(), &info), 0);
  EXPECT_EQ(info.st_gid, 4321u) << "the group owns what is written";
  EXPECT_NE(Exec("main", {"sh", "-c", "cat /proc/mounts"}).find("/fast tmpfs rw,relatime,size=1024k"),
            std::string::npos)
      << Exec("main", {"cat", "/proc/mounts"});
  harness_->Delete("web", 1);
  ASSERT_TRUE(AwaitGone("web"));
  EXPECT_TRUE(linux::MountPointsUnder(dir_ + "/kubelet")->empty());
  EXPECT_EQ(ReadFile(dir_ + "/disk/data/x").value_or("none"), "hi\n") << "the volume outlives the pod";
}

TEST_F(ContainerdTest, BlockVolumesAreDevices) {
  ASSERT_TRUE(WriteFile(dir_ + "/disk.img", "hello" + std::string((1 << 20) - 5, '\0')));
  LoopDevice device(dir_ + "/disk.img");
  if (device.path().empty()) GTEST_SKIP() << "no loop device can be had on this machine";
  BindClaim(R"("volumeMode":"Block","local":{"path":")" + device.path() + "\"}");
  harness_->Create(R"json({"metadata":{"name":"web"},"spec":{"terminationGracePeriodSeconds":1,
    "containers":[{"name":"main","image":"busybox:test","command":["sleep","100"],
      "volumeDevices":[{"name":"disk","devicePath":"/dev/xvda"}]}],
    "volumes":[{"name":"disk","persistentVolumeClaim":{"claimName":"c"}}]}})json");
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  EXPECT_EQ(Exec("main", {"sh", "-c", "read -n 5 x < /dev/xvda; echo $x"}), "hello\n");
  EXPECT_EQ(Exec("main", {"sh", "-c", "printf world > /dev/xvda && echo written"}), "written\n");
  EXPECT_EQ(ReadFile(dir_ + "/disk.img")->substr(0, 5), "world");
  harness_->Delete("web", 1);
  ASSERT_TRUE(AwaitGone("web"));
  EXPECT_TRUE(linux::MountPointsUnder(dir_ + "/kubelet")->empty());
}

TEST_F(ContainerdTest, SubPathsStayInTheVolume) {
  ASSERT_TRUE(MakeDirs(dir_ + "/disk"));
  ASSERT_EQ(::symlink("/etc", (dir_ + "/disk/out").c_str()), 0);
  harness_->Create(
      R"json({"metadata":{"name":"web"},"spec":{"containers":[{"name":"main","image":"busybox:test",
    "command":["sleep","100"],"volumeMounts":[{"name":"d","mountPath":"/d","subPath":"out"}]}],
    "volumes":[{"name":"d","hostPath":{"path":")json" +
      dir_ + R"json(/disk"}}]}})json");
  ASSERT_TRUE(harness_->Await("web", [](const corev1::Pod* pod) {
    return pod && pod->status().container_statuses_size() > 0 &&
           pod->status().container_statuses(0).state().waiting().reason() == "CreateContainerConfigError";
  }));
  EXPECT_EQ(harness_->Get("web").status().container_statuses(0).state().waiting().message(),
            "failed to prepare subPath for volumeMount \"d\" of container \"main\"");
  harness_->Delete("web", 0);
  ASSERT_TRUE(AwaitGone("web"));
}

TEST_F(ContainerdTest, ADeadlineEndsAPod) {
  harness_->Create(R"json({"metadata":{"name":"late"},"spec":{"activeDeadlineSeconds":2,
    "terminationGracePeriodSeconds":1,"containers":[{"name":"main","image":"busybox:test",
      "command":["sleep","100"]}]}})json");
  ASSERT_TRUE(AwaitPhase("late", "Failed"));
  EXPECT_EQ(harness_->Get("late").status().reason(), "DeadlineExceeded");
  ASSERT_TRUE(harness_->Await("late", [](const corev1::Pod* pod) {
    return pod && pod->status().container_statuses(0).state().has_terminated();
  }));
  harness_->Delete("late", 0);
  ASSERT_TRUE(AwaitGone("late"));
}

TEST_F(ContainerdTest, RestartRules) {
  harness_->Create(R"json({"metadata":{"name":"job"},"spec":{"restartPolicy":"Never","containers":[
    {"name":"main","image":"busybox:test","command":["sh","-c",
       "if [ -e /data/ran ]; then exit 0; fi; touch /data/ran; exit 42"],
     "restartPolicy":"Never","restartPolicyRules":[{"action":"Restart","exitCodes":{"operator":"In","values":[42]}}],
     "volumeMounts":[{"name":"data","mountPath":"/data"}]}],
    "volumes":[{"name":"data","emptyDir":{}}]}})json");
  ASSERT_TRUE(AwaitPhase("job", "Succeeded")) << harness_->Get("job").ShortDebugString();
  EXPECT_EQ(harness_->Get("job").status().container_statuses(0).restart_count(), 1);
  harness_->Delete("job", 0);
  ASSERT_TRUE(AwaitGone("job"));
}

TEST_F(ContainerdTest, AllContainersBeginAnew) {
  harness_->Create(R"json({"metadata":{"name":"all"},"spec":{"restartPolicy":"Never",
    "initContainers":[{"name":"init","image":"busybox:test","command":["sh","-c","echo x >> /data/inits"],
      "volumeMounts":[{"name":"data","mountPath":"/data"}]}],
    "containers":[{"name":"main","image":"busybox:test","command":["sh","-c",
       "if [ \"$(cat /data/inits)\" != x ]; then exit 0; fi; exit 42"],
     "restartPolicy":"Never",
     "restartPolicyRules":[{"action":"RestartAllContainers","exitCodes":{"operator":"In","values":[42]}}],
     "volumeMounts":[{"name":"data","mountPath":"/data"}]}],
    "volumes":[{"name":"data","emptyDir":{}}]}})json");
  ASSERT_TRUE(AwaitPhase("all", "Succeeded")) << harness_->Get("all").ShortDebugString();
  corev1::Pod pod = harness_->Get("all");
  EXPECT_EQ(pod.status().container_statuses(0).restart_count(), 1);
  EXPECT_EQ(pod.status().init_container_statuses(0).restart_count(), 1);
  harness_->Delete("all", 0);
  ASSERT_TRUE(AwaitGone("all"));
}

// Needs containerd 2.1; skips unsupported features.
TEST_F(ContainerdTest, IdsOfItsOwnAndAnImageAsAVolume) {
  auto status = cri_.runtime->Status();
  ASSERT_TRUE(status);
  bool can = false;
  for (const auto& handler : status->handlers) can = can || (handler.name.empty() && handler.user_namespaces);
  if (!can) GTEST_SKIP() << "the runtime has no user namespaces";
  harness_->Create(
      R"json({"metadata":{"name":"web"},"spec":{"hostUsers":false,"terminationGracePeriodSeconds":1,
    "containers":[{"name":"main","image":"busybox:test","command":["sh","-c",
      "trap 'exit 0' TERM; while true; do sleep 0.1; done"],
      "volumeMounts":[{"name":"img","mountPath":"/img"},{"name":"data","mountPath":"/data"}]}],
    "volumes":[{"name":"img","image":{"reference":"docker.io/library/busybox:test","pullPolicy":"IfNotPresent"}},
               {"name":"data","emptyDir":{}}]}})json");
  ASSERT_TRUE(harness_->Await("web", IsPodReady)) << harness_->Get("web").ShortDebugString();
  EXPECT_NE(Exec("main", {"cat", "/proc/self/uid_map"}).find("65536"), std::string::npos);
  EXPECT_NE(Exec("main", {"ls", "/img/bin"}).find("busybox"), std::string::npos);
  EXPECT_EQ(Exec("main", {"sh", "-c", "echo x > /data/x && id -u"}), "0\n");
  corev1::Pod pod = harness_->Get("web");
  EXPECT_FALSE(
      pod.status().container_statuses(0).volume_mounts(0).volume_status().image().image_ref().empty());
  harness_->Delete("web", 1);
  ASSERT_TRUE(AwaitGone("web"));
}

}  // namespace
}  // namespace keelson::kubelet
