// SELinux labels of volumes: what a host says, and which pods get which label.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "kubelet/testing/metric_value.h"
#include "kubelet/volume/selinux/volumes.h"
#include "lib/api/codec/codec.h"
#include "lib/base/file.h"

namespace keelson::kubelet {
namespace {

constexpr char kFiles[] = "system_u:object_r:container_file_t:s0";
constexpr char kC1[] = "system_u:object_r:container_file_t:s0:c1,c2",
               kC3[] = "system_u:object_r:container_file_t:s0:c3,c4";
constexpr char kPlugin[] = "kubernetes.io/csi/d";

corev1::SELinuxOptions Options(const std::string& user, const std::string& type, const std::string& level) {
  corev1::SELinuxOptions out;
  out.set_user(user);
  out.set_type(type);
  out.set_level(level);
  return out;
}

class SeLinuxHostTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/selinux_test.XXXXXX";
    root_ = ::mkdtemp(name);
  }
  void TearDown() override { (void)RemoveTree(root_); }
  void Put(const std::string& path, const std::string& text) {
    ASSERT_TRUE(MakeDirs(root_ + path.substr(0, path.rfind('/'))));
    ASSERT_TRUE(WriteFile(root_ + path, text));
  }
  std::string LabelOf(const std::string& level) {
    return *SeLinuxLabels::OfHost(root_).FileLabel(Options("", "", level));
  }

  std::string root_;
};

TEST_F(SeLinuxHostTest, WithoutSeLinuxThereAreNoLabels) {
  EXPECT_FALSE(SeLinuxLabels::OfHost(root_).enabled());
  Put("/sys/fs/selinux/enforce", "0");
  Put("/proc/self/attr/current", std::string("kernel\0", 7));
  EXPECT_FALSE(SeLinuxLabels::OfHost(root_).enabled()) << "no policy is loaded yet";
}

TEST_F(SeLinuxHostTest, ThePolicySaysWhatFilesOfContainersHave) {
  Put("/sys/fs/selinux/enforce", "1");
  Put("/proc/self/attr/current", "system_u:system_r:kubelet_t:s0");
  EXPECT_TRUE(SeLinuxLabels::OfHost(root_).enabled());
  EXPECT_EQ(LabelOf("s0:c1,c2"), "") << "the policy has no contexts of containers";
  Put("/etc/selinux/config", "# comment\nSELINUX=enforcing\nSELINUXTYPE=strict\n");
  Put("/etc/selinux/strict/contexts/lxc_contexts",
      "process = \"system_u:system_r:container_t:s0\"\nfile = \"system_u:object_r:container_file_t:s0\"\n");
  EXPECT_EQ(LabelOf("s0:c1,c2"), kC1);
  Put("/usr/share/containers/selinux/contexts", "file = \"system_u:object_r:own_file_t:s0\"\n");
  EXPECT_EQ(LabelOf("s0:c1,c2"), "system_u:object_r:own_file_t:s0:c1,c2");
}

TEST(SeLinuxLabelTest, AFileHasTheUserAndLevelOfItsProcess) {
  const SeLinuxLabels labels{kFiles};
  EXPECT_EQ(*labels.FileLabel(Options("", "", "s0:c1,c2")), kC1);
  EXPECT_EQ(*labels.FileLabel(Options("", "spc_t", "s0:c1,c2")), kC1);
  EXPECT_EQ(*labels.FileLabel(Options("user_u", "", "s0")), "user_u:object_r:container_file_t:s0");
  EXPECT_EQ(*labels.FileLabel(Options("user_u", "spc_t", "")), "") << "the runtime chooses the level";
  EXPECT_EQ(*SeLinuxLabels("a:b:c").FileLabel(Options("", "", "s0")), "a:b:c:s0");
  for (const char* level : {"s0\",suid", "s0\n", "s0 c1", "s0\\"}) {
    EXPECT_FALSE(labels.FileLabel(Options("", "", level))) << "it would end a mount option: " << level;
  }
}

// One volume of pods, each with a container of its own label.
class SeLinuxVolumesTest : public ::testing::Test {
 protected:
  corev1::Pod PodOf(const std::string& uid, const std::string& spec) {
    corev1::Pod pod;
    EXPECT_TRUE(api::DecodeJson(R"({"metadata":{"uid":")" + uid + R"("},"spec":{)" + spec + "}}", pod));
    pod.mutable_spec()->add_volumes()->set_name("v");
    return pod;
  }
  // Its only container has the level; empty: it says nothing.
  corev1::Pod PodWith(const std::string& uid, const std::string& level, const std::string& more = "") {
    const std::string options =
        level.empty() ? "" : R"(,"securityContext":{"seLinuxOptions":{"level":")" + level + R"("}})";
    return PodOf(uid, R"("containers":[{"name":"c","volumeMounts":[{"name":"v"}])" + options + "}]" + more);
  }
  std::shared_ptr<const corev1::PersistentVolume> Volume(const std::string& modes) {
    auto out = std::make_shared<corev1::PersistentVolume>();
    EXPECT_TRUE(api::DecodeJson(
        R"({"metadata":{"name":"pv"},"spec":{"csi":{"driver":"d"},"accessModes":[)" + modes + "]}}", *out));
    return out;
  }
  std::string Admit(const corev1::Pod& pod, bool takes = true) {
    auto label = volumes_.Admit({pod, pod.spec().volumes(0).name(), volume_.get(), kPlugin}, takes);
    return label ? *label : "error: " + label.error().message();
  }
  double Count(const std::string& name, const std::string& mode) {
    const std::string labels = name.starts_with("volume")
                                   ? "{volume_plugin=\"kubernetes.io/csi/d\",access_mode=\""
                                   : "{access_mode=\"";
    return MetricValue("volume_manager_selinux_" + name + "_total" + labels + mode + "\"}");
  }

  std::shared_ptr<const corev1::PersistentVolume> volume_ = Volume(R"("ReadWriteOncePod")");
  SeLinuxVolumes volumes_{{SeLinuxLabels(kFiles), false}}, every_{{SeLinuxLabels(kFiles), true}};
};

TEST_F(SeLinuxVolumesTest, AVolumeOfOnePodIsMountedWithItsLabel) {
  const double admitted = Count("volumes_admitted", "RWOP");
  EXPECT_EQ(Admit(PodWith("one", "s0:c1,c2")), kC1);
  EXPECT_EQ(Admit(PodWith("one", "s0:c1,c2")), kC1) << "also at the pod's next sync";
  EXPECT_EQ(Count("volumes_admitted", "RWOP"), admitted + 1);
}

TEST_F(SeLinuxVolumesTest, NothingIsPassedOnWhereItMeansNothing) {
  EXPECT_EQ(Admit(PodWith("one", "s0:c1,c2"), false), "") << "the driver does not take it";
  EXPECT_EQ(Admit(PodWith("two", "")), "") << "the runtime chooses the label";
  EXPECT_EQ(Admit(PodWith("three", "s0:c1,c2", R"(,"securityContext":{"seLinuxChangePolicy":"Recursive"})")),
            "");
  EXPECT_EQ(Admit(PodOf("four", R"("containers":[{"name":"c"}],
      "securityContext":{"seLinuxOptions":{"level":"s0:c1,c2"}})")),
            "")
      << "no container mounts it";
}

TEST_F(SeLinuxVolumesTest, ThePodsOptionsCountWhereTheContainerHasNone) {
  EXPECT_EQ(Admit(PodWith("one", "", R"(,"securityContext":{"seLinuxOptions":{"level":"s0:c3,c4"}})")), kC3);
}

TEST_F(SeLinuxVolumesTest, ContainersOfOnePodNeedOneLabel) {
  const corev1::Pod pod = PodOf("one", R"("initContainers":[{"name":"a","volumeMounts":[{"name":"v"}],
      "securityContext":{"seLinuxOptions":{"level":"s0:c1,c2"}}}],
      "containers":[{"name":"b","volumeMounts":[{"name":"v"}],
      "securityContext":{"seLinuxOptions":{"level":"s0:c3,c4"}}}])");
  double before = Count("pod_context_mismatch_errors", "RWOP");
  EXPECT_EQ(Admit(pod), std::string("error: multiple SELinux labels found: ") + kC1 + "," + kC3);
  EXPECT_EQ(Count("pod_context_mismatch_errors", "RWOP"), before + 1);
  volume_ = Volume(R"("ReadWriteOnce")");
  before = Count("pod_context_mismatch_warnings", "RWO");
  EXPECT_EQ(Admit(pod), "") << "the runtime relabels it";
  EXPECT_EQ(Admit(pod), "");
  EXPECT_EQ(Count("pod_context_mismatch_warnings", "RWO"), before + 1);
}

TEST_F(SeLinuxVolumesTest, OptionsThatAreNoLabelKeepThePodFromTheVolume) {
  const double before = Count("container_errors", "RWOP");
  EXPECT_EQ(Admit(PodWith("one", R"(s0\")")).substr(0, 6), "error:");
  EXPECT_EQ(Count("container_errors", "RWOP"), before + 1);
}

TEST_F(SeLinuxVolumesTest, OtherAccessModesTakeTheGate) {
  volume_ = Volume(R"("ReadWriteOnce","ReadWriteMany")");
  const double warnings = Count("volume_context_mismatch_warnings", "RWX"),
               errors = Count("volume_context_mismatch_errors", "RWX");
  EXPECT_EQ(Admit(PodWith("one", "s0:c1,c2")), "");
  EXPECT_EQ(Admit(PodWith("two", "s0:c3,c4")), "");
  EXPECT_EQ(Count("volume_context_mismatch_warnings", "RWX"), warnings + 1);

  const auto admit = [&](const corev1::Pod& pod) {
    auto label = every_.Admit({pod, pod.spec().volumes(0).name(), volume_.get(), kPlugin}, true);
    return label ? *label : label.error().message();
  };
  EXPECT_EQ(admit(PodWith("one", "s0:c1,c2")), kC1);
  EXPECT_EQ(admit(PodWith("two", "s0:c1,c2")), kC1);
  const std::string conflict =
      std::string("conflicting SELinux labels of volume pv: \"") + kC1 + "\" and \"" + kC3 + "\"";
  EXPECT_EQ(admit(PodWith("three", "s0:c3,c4")), conflict);
  every_.Forget("one");
  EXPECT_EQ(admit(PodWith("three", "s0:c3,c4")), conflict) << "another pod has it still";
  EXPECT_EQ(Count("volume_context_mismatch_errors", "RWX"), errors + 2);
  every_.Forget("two");
  EXPECT_EQ(admit(PodWith("three", "s0:c3,c4")), kC3);
}

}  // namespace
}  // namespace keelson::kubelet
