#include "ctl/upgrade/backup.h"

#include <ctime>

#include "ctl/host/paths.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

// Copies the file, or what is in the directory.
Result<> Copy(Host& host, const std::string& path, const std::string& to, std::vector<std::string>& copied) {
  if (!host.Exists(path)) return {};
  if (const auto text = host.Read(path)) {
    KEELSON_RETURN_IF_ERROR(host.Write(to + path, *text, 0600));
    copied.push_back(path);
    return {};
  }
  // Not readable as a file: a directory.
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> names, host.List(path));
  for (const std::string& name : names) {
    KEELSON_RETURN_IF_ERROR(Copy(host, path + "/" + name, to, copied));
  }
  return {};
}

Result<> Make(Host& host, const BackupPlan& plan) {
  KEELSON_RETURN_IF_ERROR(host.Remove(plan.directory));
  KEELSON_RETURN_IF_ERROR(host.MakeDirectory(plan.directory, 0700));
  std::vector<std::string> files;
  for (const std::string& place : plan.places) {
    KEELSON_RETURN_IF_ERROR(Copy(host, place, plan.directory, files));
  }
  if (!plan.snapshot.empty()) {
    KEELSON_RETURN_IF_ERROR(host.Run(plan.snapshot));
    files.emplace_back("etcd.db");
  }
  return host.Write(plan.directory + kBackupList, Join(files, "\n") + "\n", 0600);
}

}  // namespace

std::string BackupDirectory(WallTime now) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%d-%H-%M-%S", &parts);
  return std::string(paths::kKubernetes) + "/tmp/nodectl-backup-" + text;
}

BackupPlan PlanBackup(const std::string& directory, const std::optional<ClusterConfiguration>& cluster,
                      const Host& host) {
  BackupPlan out{.directory = directory};
  for (const char* path : {paths::kPki,
                           paths::kAdminConf,
                           paths::kSuperAdminConf,
                           paths::kKubeletConf,
                           paths::kControllerManagerConf,
                           paths::kSchedulerConf,
                           paths::kProxyConf,
                           paths::kCniConf,
                           paths::kControlPlaneEnv,
                           paths::kControlPlaneManifest,
                           paths::kProxyEnv,
                           paths::kCniEnv,
                           paths::kKubeletConfig,
                           paths::kKubeletInstanceConfig,
                           paths::kKubeletFlags,
                           paths::kProxyConfig,
                           paths::kCsiConf,
                           paths::kCsiEnv,
                           "/etc/default/kubelet",
                           "/etc/default/kube-proxy",
                           "/etc/default/kube-cni",
                           "/etc/default/kube-controlplane",
                           "/etc/default/keelson-csi-local",
                           "/etc/default/keelson-csi-controller"}) {
    out.places.emplace_back(path);
  }
  if (!cluster) return out;
  if (cluster->certificates_dir != paths::kPki) out.places.push_back(cluster->certificates_dir);
  out.snapshot = {"kube-controlplane",
                  "etcd",
                  "snapshot",
                  "save",
                  host.RealPath(directory + "/etcd.db"),
                  "--data-dir=" + host.RealPath(paths::kControlPlaneData)};
  if (const auto& etcd = cluster->external_etcd) {
    out.snapshot.back() = "--etcd-servers=" + Join(etcd->endpoints, ",");
    for (const auto& [flag, file] :
         {std::pair("--etcd-cafile=", &etcd->ca_file), std::pair("--etcd-certfile=", &etcd->certificate_file),
          std::pair("--etcd-keyfile=", &etcd->key_file)}) {
      if (!file->empty()) out.snapshot.push_back(flag + host.RealPath(*file));
    }
  }
  return out;
}

Result<> BackUp(Host& host, const BackupPlan& plan, std::ostream& out) {
  if (host.Exists(plan.directory + kBackupList)) {
    out << "[upgrade/backup] Keeping the backup of the run before in \"" << plan.directory << "\"\n";
    return {};
  }
  out << "[upgrade/backup] Copying certificates, keys, kubeconfigs and settings"
      << (plan.snapshot.empty() ? "" : ", and a snapshot of etcd,") << " to \"" << plan.directory << "\"\n";
  if (auto made = Make(host, plan); !made) {
    return made.error().Wrap("no backup in " + plan.directory + ", and nothing else has changed");
  }
  return {};
}

}  // namespace keelson::ctl
