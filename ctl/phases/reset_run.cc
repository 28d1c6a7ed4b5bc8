#include "ctl/phases/reset_run.h"

#include "ctl/host/paths.h"
#include "ctl/host/runtime_facts.h"
#include "ctl/host/units.h"
#include "ctl/phases/phase.h"
#include "ctl/phases/reset_etcd.h"
#include "ctl/preflight/check.h"
#include "lib/base/text.h"

namespace keelson::ctl {
namespace {

// Removes the file, and what a write that was killed has left beside it.
Result<> RemoveWithLeftovers(Host& host, const std::string& file) {
  KEELSON_RETURN_IF_ERROR(host.Remove(file));
  const size_t slash = file.rfind('/');
  const std::string directory = file.substr(0, slash), prefix = file.substr(slash + 1) + ".tmp";
  if (!host.Exists(directory)) return {};
  KEELSON_ASSIGN_OR_RETURN(const std::vector<std::string> names, host.List(directory));
  for (const std::string& name : names) {
    if (name.starts_with(prefix)) KEELSON_RETURN_IF_ERROR(host.Remove(directory + "/" + name));
  }
  return {};
}

std::vector<std::string> CsiSettings(const Host& host) {
  std::vector<std::string> out;
  for (const char* path : {"/etc/default/keelson-csi-local", "/etc/sysconfig/keelson-csi-local"}) {
    if (auto text = host.Read(path)) out.push_back(*std::move(text));
  }
  return out;
}

// The last --data-dir= of the settings that is not in a comment.
std::string DataDirIn(const std::vector<std::string>& settings) {
  constexpr std::string_view kFlag = "--data-dir=";
  std::string out = paths::kCsiData;
  for (const std::string& text : settings) {
    for (std::string_view line : Split(text, '\n')) {
      line = Trim(line);
      const size_t at = line.rfind(kFlag);
      if (line.starts_with('#') || at == line.npos) continue;
      const std::string_view value = line.substr(at + kFlag.size());
      const std::string_view path = value.substr(0, value.find_first_of(" \t\"'"));
      // Never the root of something larger, whatever the file says.
      if (path.starts_with('/') && path.find_first_not_of('/') != path.npos) out = path;
    }
  }
  return out;
}

class Reset {
 public:
  Reset(Host& host, const ResetConfiguration& config, std::ostream& out, std::ostream& err)
      : host_(host), config_(config), plan_(PlanReset(config, CsiSettings(host))), out_(out), err_(err) {}

  Result<> Run() {
    // Daemons first: they would put back what is removed.
    out_ << "[reset] Stopping the units " << Join(plan_.units, ", ") << "\n";
    for (const std::string& unit : plan_.units) KEELSON_RETURN_IF_ERROR(StopUnit(host_, unit));
    RemovePods();
    for (const std::vector<std::string>& command : plan_.cleanups) {
      if (!host_.HasProgram(command[0])) continue;
      out_ << "[reset] Running " << Join(command, " ") << "\n";
      if (auto done = host_.Run(command); !done) Fail(done.error());
    }
    out_ << "[reset] Unmounting mounted directories in \"" << paths::kKubelet << "\"\n";
    if (auto done = host_.UnmountBelow(paths::kKubelet); !done) {
      // What is mounted may be a volume with data: nothing there is removed.
      return done.error().Wrap("volumes of pods are still mounted");
    }
    DetachVolumes();
    RemoveFiles();
    if (failures_.empty()) return {};
    return Error(Code::kInternal, "reset is not complete:\n" + Join(failures_, "\n"));
  }

 private:
  void Fail(const Error& error) {
    failures_.push_back(error.message());
    err_ << "[reset] WARNING: " << error.message() << "\n";
  }

  void RemovePods() {
    std::vector<std::string> sockets(std::begin(paths::kRuntimeSockets), std::end(paths::kRuntimeSockets));
    if (!config_.cri_socket.empty()) sockets = {PathOfSocket(config_.cri_socket)};
    bool found = false;
    for (const std::string& socket : sockets) {
      const Result<int> removed = host_.RemovePods(socket);
      if (!removed && removed.error().Is(Code::kNotFound)) continue;
      found = true;
      if (!removed) {
        Fail(removed.error());
      } else if (*removed > 0) {
        out_ << "[reset] Removed " << *removed << " pods\n";
      }
    }
    if (!found) {
      err_ << "[reset] WARNING: no container runtime is found: pods that run on this machine go on\n";
    }
  }

  // Loop devices of raw block volumes: those of file systems end with their mounts.
  void DetachVolumes() {
    if (!host_.Exists(plan_.volumes)) return;
    const auto devices = host_.Ask({"losetup", "--raw", "--noheadings", "--output", "NAME,BACK-FILE"});
    if (!devices) return Fail(devices.error());
    for (const std::string& device : DevicesOf(*devices, host_.RealPath(plan_.volumes))) {
      if (auto done = host_.Run({"losetup", "--detach", device}); !done) Fail(done.error());
    }
    if (!config_.remove_volumes) {
      out_ << "[reset] Volumes of keelson-csi-local stay in \"" << plan_.volumes
           << "\"; --remove-local-volumes removes them\n";
    }
  }

  void RemovePath(const std::string& path) {
    if (auto done = host_.Remove(path); !done) Fail(done.error());
  }

  void RemoveFiles() {
    out_ << "[reset] Deleting contents of directories: [" << Join(plan_.emptied, " ") << "]\n";
    for (const std::string& directory : plan_.emptied) {
      if (!host_.Exists(directory)) continue;
      const auto names = host_.List(directory);
      if (!names) {
        Fail(names.error());
        continue;
      }
      for (const std::string& name : *names) RemovePath(directory + "/" + name);
    }
    out_ << "[reset] Deleting files: [" << Join(plan_.files, " ") << "]\n";
    for (const std::string& file : plan_.files) {
      if (auto done = RemoveWithLeftovers(host_, file); !done) Fail(done.error());
    }
    for (const std::string& directory : plan_.directories) RemovePath(directory);
  }

  Host& host_;
  const ResetConfiguration& config_;
  const ResetPlan plan_;
  std::ostream& out_;
  std::ostream& err_;
  std::vector<std::string> failures_;
};

struct ResetRun {
  Host& host;
  const ResetConfiguration& config;
  const std::vector<std::string> ignored;
  std::ostream& out;
  std::ostream& err;
  PhaseLog* const phase_log;

  PhaseLog* log() const { return phase_log; }
};

Result<> Preflight(ResetRun& run) {
  run.out << "[preflight] Running pre-flight checks\n";
  KEELSON_RETURN_IF_ERROR(RunChecks({PrivilegedUserCheck()}, run.host, run.ignored, run.err));
  return RequireInitSystem(run.host);
}

Result<> RemoveMember(ResetRun& run) {
  return RemoveEtcdMember(run.host, run.ignored, run.config.dry_run, run.out, run.err);
}

Result<> CleanUpNode(ResetRun& run) {
  KEELSON_RETURN_IF_ERROR(Reset(run.host, run.config, run.out, run.err).Run());
  // The mark of an unfinished init or join goes last: until then the next one would not begin anew.
  KEELSON_RETURN_IF_ERROR(RemoveWithLeftovers(run.host, paths::kEtcdRemoved));
  return RemoveWithLeftovers(run.host, paths::kUnfinished);
}

constexpr Phase<ResetRun> kPhases[] = {
    {"preflight", "Check that this user may do it", Preflight},
    {"remove-etcd-member", "Take this machine's member out of etcd", RemoveMember},
    {"cleanup-node", "Stop units, remove pods, files and data", CleanUpNode},
};

}  // namespace

std::vector<std::string> DevicesOf(std::string_view table, const std::string& directory) {
  std::vector<std::string> out;
  for (std::string_view line : Split(table, '\n')) {
    const size_t gap = line.find(' ');
    if (gap == line.npos) continue;
    if (Trim(line.substr(gap)).starts_with(directory + "/")) out.emplace_back(line.substr(0, gap));
  }
  return out;
}

ResetPlan PlanReset(const ResetConfiguration& config, const std::vector<std::string>& csi_settings) {
  ResetPlan out;
  out.units = {"kubelet",           "kube-proxy",       "kube-cni", "keelson-csi-controller",
               "keelson-csi-local", "kube-controlplane"};
  out.volumes = DataDirIn(csi_settings);
  out.cleanups = {{"kube-proxy", "--cleanup"}, {"kube-cni", "--cleanup", "--cni-conf-dir=/etc/cni/net.d"}};
  out.emptied = {paths::kManifests, config.certificates_dir, paths::kKubelet, paths::kControlPlaneData,
                 "/var/lib/cni"};
  if (config.remove_volumes) out.emptied.push_back(out.volumes);
  if (config.clean_tmp_dir) out.emptied.push_back(std::string(paths::kKubernetes) + "/tmp");
  out.files = {paths::kAdminConf,
               paths::kSuperAdminConf,
               paths::kKubeletConf,
               paths::kBootstrapConf,
               paths::kControllerManagerConf,
               paths::kSchedulerConf,
               paths::kProxyConf,
               paths::kCniConf,
               paths::kControlPlaneEnv,
               paths::kProxyEnv,
               paths::kCniEnv,
               paths::kCsiConf,
               paths::kCsiEnv,
               paths::kCniConflist};
  out.directories = {"/var/lib/kube-proxy"};
  return out;
}

std::string VolumesThatStay(const Host& host, const ResetConfiguration& config) {
  const std::string directory = DataDirIn(CsiSettings(host));
  return config.remove_volumes || !host.Exists(directory) ? "" : directory;
}

std::string DescribeResetPhases() { return DescribePhases(kPhases); }

Result<> RunReset(Host& host, const ResetConfiguration& config, std::ostream& out, std::ostream& err,
                  const ResetOptions& options) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> ignored, IgnoredChecks(config.ignore_preflight_errors));
  ResetRun run{host, config, std::move(ignored), out, err, options.log};
  return RunPhases(kPhases, options.phase, config.skip_phases, run);
}

}  // namespace keelson::ctl
