#include "kubelet/cm/pod_cgroups.h"

#include "kubelet/container/resources.h"
#include "lib/k8s/qos.h"

namespace keelson::kubelet {

namespace {

constexpr char kPods[] = "/kubepods";
constexpr char kPodPrefix[] = "pod";

class PodCgroupsImpl : public PodCgroups {
 public:
  PodCgroupsImpl(linux::Cgroups cgroups, CgroupOptions options)
      : cgroups_(std::move(cgroups)), options_(std::move(options)) {
    while (!options_.root.empty() && options_.root.back() == '/') options_.root.pop_back();
    if (!options_.root.empty() && options_.root[0] != '/') options_.root.insert(0, "/");
  }

  Result<> Start(const NodeContext& node) override {
    if (!options_.per_qos) return {};
    linux::CgroupLimits all;
    int64_t milli = k8s::AmountOf(node.allocatable, "cpu").MilliValue();
    if (milli > 0) all.cpu_shares = MilliCpuToShares(milli);
    int64_t memory = k8s::AmountOf(node.allocatable, "memory").Value();
    if (memory > 0) all.memory_limit_bytes = memory;
    RETURN_IF_ERROR(cgroups_.Create(options_.root + kPods, all));
    linux::CgroupLimits least;
    least.cpu_shares = 2;
    RETURN_IF_ERROR(cgroups_.Create(options_.root + kPods + "/besteffort", least));
    return cgroups_.Create(options_.root + kPods + "/burstable", {});
  }

  Result<> Ensure(const corev1::Pod& pod, const NodeContext& node) override {
    if (!options_.per_qos) return {};
    return cgroups_.Create(Parent(pod), PodCgroupLimits(pod, node, options_.pod_pids_limit));
  }

  std::string Parent(const corev1::Pod& pod) const override {
    if (!options_.per_qos) return options_.root;
    return Class(k8s::QosClass(pod)) + "/" + kPodPrefix + pod.metadata().uid();
  }

  Result<> Remove(const std::string& uid) override {
    if (!options_.per_qos) return {};
    Result<> first;
    for (const std::string& dir : Classes())
      if (auto removed = cgroups_.Remove(dir + "/" + kPodPrefix + uid); !removed && first) first = removed;
    return first;
  }

  std::set<std::string> Uids() const override {
    std::set<std::string> uids;
    if (!options_.per_qos) return uids;
    for (const std::string& dir : Classes())
      for (const std::string& name : cgroups_.Children(dir))
        if (name.compare(0, sizeof(kPodPrefix) - 1, kPodPrefix) == 0)
          uids.insert(name.substr(sizeof(kPodPrefix) - 1));
    return uids;
  }

  linux::CgroupUsage Usage(const corev1::Pod& pod) const override {
    return options_.per_qos ? cgroups_.Usage(Parent(pod)) : linux::CgroupUsage();
  }

 private:
  std::string Class(std::string_view qos) const {
    std::string dir = options_.root + kPods;
    if (qos == k8s::kBurstable) return dir + "/burstable";
    if (qos == k8s::kBestEffort) return dir + "/besteffort";
    return dir;
  }
  std::vector<std::string> Classes() const {
    return {Class(k8s::kGuaranteed), Class(k8s::kBurstable), Class(k8s::kBestEffort)};
  }

  linux::Cgroups cgroups_;
  CgroupOptions options_;
};

}  // namespace

std::unique_ptr<PodCgroups> NewPodCgroups(linux::Cgroups cgroups, const CgroupOptions& options) {
  return std::make_unique<PodCgroupsImpl>(std::move(cgroups), options);
}

}  // namespace keelson::kubelet
