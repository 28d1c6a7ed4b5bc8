#include "controlplane/controllers/attachdetach/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "controlplane/controllers/testing/cluster.h"

namespace keelson::controllers {
namespace {

using namespace std::chrono_literals;

const SteadyTime kNow = SteadyTime() + 10000s;

corev1::PersistentVolume Disk(const char* mode) {
  corev1::PersistentVolume volume;
  volume.mutable_metadata()->set_name("v");
  if (*mode) volume.mutable_spec()->add_access_modes(mode);
  auto& csi = *volume.mutable_spec()->mutable_persistent_volume_source()->mutable_csi();
  csi.set_driver("disk.example.com");
  csi.set_volume_handle("vol-1");
  return volume;
}

TEST(AttachPlanTest, NamesAreUpstreams) {
  const corev1::PersistentVolume volume = Disk("ReadWriteOnce");
  EXPECT_EQ(UniqueVolumeName(volume), "kubernetes.io/csi/disk.example.com^vol-1");
  // printf 'vol-1disk.example.comn1' | sha256sum
  EXPECT_EQ(AttachmentName(volume, "n1"),
            "csi-67beaef07640111ae4680dbb1618fdc2d7e8b400988a31892dc9e25a33572edd");
  const VolumeAttachment attachment = MakeAttachment(volume, "n1");
  EXPECT_EQ(attachment.spec().attacher(), "disk.example.com");
  EXPECT_EQ(attachment.spec().node_name(), "n1");
  EXPECT_EQ(attachment.spec().source().persistent_volume_name(), "v");
}

TEST(AttachPlanTest, ViewOfNodes) {
  corev1::Node node = NodeNamed("n1");
  EXPECT_TRUE(ViewOf(&node, "x").healthy);
  EXPECT_FALSE(ViewOf(&node, "x").in_use);
  node.mutable_status()->add_volumes_in_use("x");
  EXPECT_TRUE(ViewOf(&node, "x").in_use);
  node.mutable_spec()->add_taints()->set_key("node.kubernetes.io/out-of-service");
  EXPECT_TRUE(ViewOf(&node, "x").out_of_service);
  EXPECT_FALSE(ViewOf(nullptr, "x").known);
}

TEST(AttachPlanTest, WhichPodsNeedTheirVolumes) {
  struct Case {
    const char* what;
    const char* phase;
    bool leaving;
    const char* containers;  // r: running, t: terminated, w: waiting
    bool keep, want;
  };
  for (const Case& c : {Case{"runs", "Running", false, "r", false, true},
                        {"has not begun", "Pending", false, "", false, true},
                        {"waits for its image", "Pending", false, "w", false, true},
                        {"has ended", "Succeeded", false, "t", false, false},
                        {"has ended, and its kubelet keeps volumes", "Failed", false, "t", true, true},
                        {"goes, and runs", "Running", true, "tr", false, true},
                        {"goes, and nothing runs", "Running", true, "tw", false, false},
                        {"goes, and nothing is known of it", "Pending", true, "", false, false},
                        {"goes, and its kubelet keeps volumes", "Running", true, "t", true, true}}) {
    corev1::Pod pod = PodNamed("p");
    pod.mutable_status()->set_phase(c.phase);
    if (c.leaving) pod.mutable_metadata()->mutable_deletion_timestamp();
    for (const char* state = c.containers; *state; ++state) {
      auto& container = *pod.mutable_status()->add_container_statuses()->mutable_state();
      if (*state == 'r') container.mutable_running();
      if (*state == 't') container.mutable_terminated();
      if (*state == 'w') container.mutable_waiting();
    }
    EXPECT_EQ(NeedsVolumes(pod, c.keep), c.want) << c.what;
  }
}

TEST(AttachPlanTest, Plans) {
  const NodeView idle{.known = true, .healthy = true}, busy{.known = true, .in_use = true, .healthy = true};
  const NodeView lost{.known = true, .in_use = true}, gone{.in_use = true}, gone_idle;
  const NodeView evicted{.known = true, .in_use = true, .out_of_service = true};
  struct Case {
    const char* what;
    const char* mode;
    std::set<std::string> wanted, attached;
    std::map<std::string, NodeView> nodes;
    std::chrono::seconds unwanted_for;
    const char* want;
  };
  const Case cases[] = {
      {"a first user", "ReadWriteOnce", {"a"}, {}, {{"a", idle}}, 0s, "attach a"},
      {"nothing to do", "ReadWriteOnce", {"a"}, {"a"}, {{"a", busy}}, 0s, ""},
      {"a second node has to wait",
       "ReadWriteOnce",
       {"a", "b"},
       {"a"},
       {{"a", busy}, {"b", idle}},
       0s,
       "blocked b"},
      {"two at once: one is first",
       "ReadWriteOncePod",
       {"a", "b"},
       {},
       {{"a", idle}, {"b", idle}},
       0s,
       "attach a blocked b"},
      {"shared by many", "ReadWriteMany", {"a", "b"}, {"a"}, {{"a", busy}, {"b", idle}}, 0s, "attach b"},
      {"read by many", "ReadOnlyMany", {"a", "b"}, {}, {{"a", idle}, {"b", idle}}, 0s, "attach a, b"},
      {"no modes", "", {"a", "b"}, {"a"}, {{"a", busy}, {"b", idle}}, 0s, "attach b"},
      {"a node that is not there", "ReadWriteOnce", {"a"}, {}, {{"a", gone}}, 0s, ""},
      {"let go of", "ReadWriteOnce", {}, {"a"}, {{"a", idle}}, 0s, "detach a"},
      {"moved, and let go of",
       "ReadWriteOnce",
       {"b"},
       {"a"},
       {{"a", idle}, {"b", idle}},
       0s,
       "blocked b detach a"},
      {"still mounted", "ReadWriteOnce", {}, {"a"}, {{"a", busy}}, 3600s, ""},
      {"still mounted, as a silent node last said",
       "ReadWriteOnce",
       {},
       {"a"},
       {{"a", lost}},
       60s,
       "waiting a 300"},
      {"silent for long", "ReadWriteOnce", {}, {"a"}, {{"a", lost}}, 360s, "detach a by force: timeout"},
      {"out of service",
       "ReadWriteOnce",
       {},
       {"a"},
       {{"a", evicted}},
       0s,
       "detach a by force: out-of-service"},
      {"deleted, and had let go", "ReadWriteOnce", {}, {"a"}, {{"a", gone_idle}}, 0s, "detach a"},
      {"deleted with the volume mounted", "ReadWriteOnce", {}, {"a"}, {{"a", gone}}, 60s, "waiting a 300"},
      {"deleted so for long", "ReadWriteOnce", {}, {"a"}, {{"a", gone}}, 360s, "detach a by force: timeout"},
      {"silent, but wanted there", "ReadWriteOnce", {"a"}, {"a"}, {{"a", lost}}, 0s, ""},
  };
  for (const Case& one : cases) {
    const corev1::PersistentVolume volume = Disk(one.mode);
    std::map<std::string, std::shared_ptr<const VolumeAttachment>> attachments;
    std::map<std::string, SteadyTime> unwanted;
    for (const std::string& node : one.attached) {
      attachments[node] = std::make_shared<VolumeAttachment>(MakeAttachment(volume, node));
      unwanted[node] = kNow - one.unwanted_for;
    }
    const AttachPlan plan = PlanAttachments(volume, one.wanted, attachments, one.nodes, unwanted, kNow, 360s);
    std::vector<std::string> parts;
    for (const auto& [name, nodes] : {std::pair("attach", plan.attach), std::pair("blocked", plan.blocked),
                                      std::pair("detach", plan.detach)}) {
      if (!nodes.empty()) parts.push_back(fmt::format("{} {}", name, fmt::join(nodes, ", ")));
    }
    for (const auto& [node, why] : plan.forced) parts.push_back(fmt::format("by force: {}", why));
    for (const auto& [node, left] : plan.waiting) {
      parts.push_back(fmt::format("waiting {} {}", node, left.count()));
    }
    EXPECT_EQ(fmt::format("{}", fmt::join(parts, " ")), one.want) << one.what;
  }
}

TEST(AttachPlanTest, NeverByForceIfSwitchedOff) {
  const corev1::PersistentVolume volume = Disk("ReadWriteOnce");
  const AttachPlan plan =
      PlanAttachments(volume, {}, {{"a", std::make_shared<VolumeAttachment>(MakeAttachment(volume, "a"))}},
                      {{"a", NodeView{.known = true, .in_use = true}}}, {{"a", kNow - 24h}}, kNow, 0s);
  EXPECT_TRUE(plan.detach.empty());
  EXPECT_TRUE(plan.waiting.empty());
}

}  // namespace
}  // namespace keelson::controllers
