#include "kubelet/volume/selinux/metrics.h"

namespace keelson::kubelet {

namespace {

constexpr char
    kTriesAgain[] = " Kubelet can't start such a Pod then and it will retry, therefore value of this metric ",
    kLater[] =
        "will become real errors when SELinuxMountReadWriteOncePod feature is expanded to all volume "
        "access modes.",
    kPodDiffers[] =
        "Number of errors when a Pod defines different SELinux contexts for its containers that use "
        "the same volume.",
    kVolumeDiffers[] =
        "Number of errors when a Pod uses a volume that is already mounted with a different SELinux "
        "context than the Pod needs.";

metrics::Family& OfContainers(const char* name, const std::string& help) {
  return metrics::Gauge(name, help, {"access_mode"});
}

metrics::Family& OfVolumes(const char* name, const std::string& help) {
  return metrics::Gauge(name, help, {"volume_plugin", "access_mode"});
}

}  // namespace

SeLinuxMetrics MakeSeLinuxMetrics() {
  const std::string again = kTriesAgain, later = kLater, pod = kPodDiffers, volume = kVolumeDiffers;
  return {
      {OfContainers("volume_manager_selinux_container_errors_total",
                    "Number of errors when kubelet cannot compute SELinux context for a container." + again +
                        "may not represent the actual nr. of containers."),
       OfContainers("volume_manager_selinux_container_warnings_total",
                    "Number of errors when kubelet cannot compute SELinux context for a container that are "
                    "ignored. They " +
                        later)},
      {OfContainers("volume_manager_selinux_pod_context_mismatch_errors_total",
                    pod + again + "may not represent the actual nr. of Pods."),
       OfContainers("volume_manager_selinux_pod_context_mismatch_warnings_total",
                    pod + " They are not errors yet, but they " + later)},
      {OfVolumes("volume_manager_selinux_volume_context_mismatch_errors_total",
                 volume + again + "may not represent the actual nr. of Pods."),
       OfVolumes("volume_manager_selinux_volume_context_mismatch_warnings_total",
                 volume + " They are not errors yet, but they " + later)},
      OfVolumes("volume_manager_selinux_volumes_admitted_total",
                "Number of volumes whose SELinux context was fine and will be mounted with mount -o context "
                "option.")};
}

}  // namespace keelson::kubelet
