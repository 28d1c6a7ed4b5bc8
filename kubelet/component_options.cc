#include "kubelet/component_options.h"

#include <cstdlib>
#include <limits>

#include "lib/k8s/pods/pod_util.h"

namespace keelson::kubelet {

std::set<std::string> StaticPodSources(const KubeletConfig& config) {
  std::set<std::string> sources;
  if (!config.static_pod_path.empty()) sources.insert("file");
  if (!config.static_pod_url.empty()) sources.insert("http");
  return sources;
}

int64_t PodsMemory(const Machine& machine, Reservations reservations) {
  reservations.eviction_hard.clear();
  return k8s::AmountOf(AllocatableOf(machine, reservations), "memory").Value();
}

LogRotationOptions MakeLogRotationOptions(const KubeletConfig& config) {
  LogRotationOptions out;
  if (auto size = api::Amount::Parse(config.container_log_max_size)) out.max_size = size->Value();
  out.max_files = config.container_log_max_files;
  out.workers = config.container_log_max_workers;
  out.interval = config.container_log_monitor_interval;
  return out;
}

ImageGcOptions MakeImageGcOptions(const Settings& settings, ImageManager& images) {
  const KubeletConfig& config = settings.config;
  ImageGcOptions out;
  out.high_percent = config.image_gc_high_threshold_percent;
  out.low_percent = config.image_gc_low_threshold_percent;
  out.minimum_age = config.image_minimum_gc_age;
  out.maximum_age = config.image_maximum_gc_age;
  out.pause_image = settings.flags.pod_infra_container_image;
  out.present = [&images](const std::set<std::string>& ids, WallTime as_of) {
    images.ForgetImages(ids, as_of);
  };
  return out;
}

ContainerGcOptions MakeContainerGcOptions(const KubeletFlags& flags) {
  return {flags.minimum_container_ttl, flags.maximum_dead_containers_per_container,
          flags.maximum_dead_containers};
}

PodSyncer::Options MakePodSyncerOptions(const Settings& settings, const std::string& runtime_name) {
  PodSyncer::Options out;
  out.crash_backoff_max = settings.config.max_container_restart_period;
  out.crash_backoff_first = std::min(out.crash_backoff_first, out.crash_backoff_max);
  out.runtime_name = runtime_name;
  const int dead = settings.flags.maximum_dead_containers_per_container;
  // Where the age counts too, container GC removes all of them.
  const bool aged = settings.flags.minimum_container_ttl.count() > 0 || dead < 0;
  out.kept_runs = aged ? std::numeric_limits<int>::max() : dead + 1;
  return out;
}

ImageManager::Options MakeImageManagerOptions(const Settings& settings,
                                              std::shared_ptr<CredentialProviders> providers,
                                              AccountSource accounts,
                                              PodStartupLatencyTracker& startup_latency) {
  const KubeletConfig& config = settings.config;
  ImageManager::Options out;
  out.serialize_pulls = config.serialize_image_pulls;
  out.max_parallel_pulls = config.max_parallel_image_pulls;
  out.pulls_per_second = config.registry_pull_qps;
  out.pull_burst = config.registry_burst;
  const char* home = ::getenv("HOME");
  out.credential_dirs = {settings.flags.root_dir, std::string(home ? home : "") + "/.docker", "/.docker"};
  out.providers = std::move(providers);
  out.accounts = std::move(accounts);
  out.pulled = [&startup_latency](const std::string& uid, std::chrono::nanoseconds took) {
    startup_latency.RecordImagePull(uid, took);
  };
  out.records.dir = settings.flags.root_dir + "/image_manager";
  out.records.verification = ParsePullVerification(config.image_pull_credentials_verification_policy)
                                 .value_or(PullVerification::kNeverPreloaded);
  out.records.allowlist = config.preloaded_images_verification_allowlist;
  return out;
}

}  // namespace keelson::kubelet
