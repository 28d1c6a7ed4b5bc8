#include "kubelet/testing/crash.h"

#include <utility>

#include "kubelet/cm/cgroups/forwarding_cgroups.h"

namespace keelson::kubelet {

namespace {

// A program that has begun goes on without the kubelet.
class Devices : public Disks {
 public:
  Devices(Disks& real, CrashPlan& plan) : real_(real), plan_(plan) {}
  Result<FileKind> KindOf(const std::string& path) override {
    return plan_.See<FileKind>([&] { return real_.KindOf(path); });
  }
  Result<linux::DiskContents> Probe(const std::string& device) override {
    return plan_.See<linux::DiskContents>([&] { return real_.Probe(device); });
  }
  Result<ProgramEnd> Run(const std::vector<std::string>& argv) override {
    return plan_.Step<ProgramEnd>(argv.front(), [&] { return real_.Run(argv); });
  }

 private:
  Disks& real_;
  CrashPlan& plan_;
};

class Mounts : public Mounter {
 public:
  Mounts(Mounter& real, CrashPlan& plan) : real_(real), plan_(plan), disks_(real.disks(), plan) {}
  Result<> MountTmpfs(const std::string& target, const std::string& options) override {
    return plan_.Step<void>("MountTmpfs", [&] { return real_.MountTmpfs(target, options); });
  }
  Result<> Bind(const std::string& source, const std::string& target, bool read_only) override {
    return plan_.Step<void>("Bind", [&] { return real_.Bind(source, target, read_only); });
  }
  Result<> Mount(const std::string& source, const std::string& target, const std::string& type,
                 const std::vector<std::string>& options, std::stop_token stop) override {
    return plan_.Step<void>("Mount", [&] { return real_.Mount(source, target, type, options, stop); });
  }
  Result<bool> IsMountPoint(const std::string& path) override {
    return plan_.See<bool>([&] { return real_.IsMountPoint(path); });
  }
  Result<> Unmount(const std::string& target, bool lazy) override {
    const bool device = target.find("/mounts/") != std::string::npos;
    return plan_.Step<void>(device ? "UnmountDevice" : "Unmount",
                            [&] { return real_.Unmount(target, lazy); });
  }
  Result<std::vector<std::string>> MountPointsUnder(const std::string& prefix) override {
    return plan_.See<std::vector<std::string>>([&] { return real_.MountPointsUnder(prefix); });
  }
  Result<> MakeShared(const std::string& dir) override {
    return plan_.Step<void>("MakeShared", [&] { return real_.MakeShared(dir); });
  }
  Disks& disks() override { return disks_; }

 private:
  Mounter& real_;
  CrashPlan& plan_;
  Devices disks_;
};

class Groups : public ForwardingCgroups {
 public:
  Groups(PodCgroups& real, CrashPlan& plan) : ForwardingCgroups(real), plan_(plan) {}
  Result<> Start(const NodeContext& node) override {
    return plan_.See<void>([&] { return real_.Start(node); });
  }
  Result<> Ensure(const corev1::Pod& pod, const NodeContext& node) override {
    return plan_.Step<void>("EnsureCgroup", [&] { return real_.Ensure(pod, node); });
  }
  Result<> Remove(const std::string& uid) override {
    return plan_.Step<void>("RemoveCgroup", [&] { return real_.Remove(uid); });
  }

 private:
  CrashPlan& plan_;
};

class Wire : public client::Transport {
 public:
  Wire(std::shared_ptr<client::Transport> real, CrashPlan& plan) : real_(std::move(real)), plan_(plan) {}
  Result<client::ApiResponse> Do(const client::ApiRequest& request, std::chrono::milliseconds timeout,
                                 std::stop_token stop) override {
    auto call = [&] { return real_->Do(request, timeout, stop); };
    // How often a status is written depends on the moment; what matters is the pod's removal.
    if (request.method == "DELETE") return plan_.Step<client::ApiResponse>("DELETE", call);
    return plan_.See<client::ApiResponse>(call);
  }
  Result<std::unique_ptr<client::ApiStream>> Open(const client::ApiRequest& request,
                                                  std::stop_token stop) override {
    return plan_.See<std::unique_ptr<client::ApiStream>>([&] { return real_->Open(request, stop); });
  }

 private:
  std::shared_ptr<client::Transport> real_;
  CrashPlan& plan_;
};

}  // namespace

void CrashPlan::Arm(size_t step, bool after) {
  MutexLock lock(mutex_);
  fatal_ = step;
  after_ = after;
  dead_ = fatal_entered_ = false;
  fatal_name_.clear();
  steps_.clear();
}

void CrashPlan::ArmAt(const std::string& name, bool after) {
  Arm(0, after);
  MutexLock lock(mutex_);
  fatal_name_ = name;
}

std::vector<std::string> CrashPlan::Steps() const {
  MutexLock lock(mutex_);
  return steps_;
}

bool CrashPlan::dead() const {
  MutexLock lock(mutex_);
  return dead_;
}

Result<> CrashPlan::Before(const Call& call, std::stop_token) {
  if (call.effect ? Enter(call.name, false) : !dead()) return {};
  return Killed();
}

Result<> CrashPlan::After(const Call& call) {
  if (call.effect ? Enter(call.name, true) : !dead()) return {};
  return Killed();
}

void CrashPlan::AwaitDeath() {
  MutexLock lock(mutex_);
  while (!dead_) died_.wait(mutex_);
}

bool CrashPlan::Enter(const std::string& name, bool after) {
  MutexLock lock(mutex_);
  if (!after && !dead_) {
    steps_.push_back(name);
    if (fatal_ > 0 ? steps_.size() == fatal_ : !fatal_entered_ && name == fatal_name_) {
      fatal_entered_ = true;
      fatal_name_ = name;
      if (!after_) dead_ = true;
    }
  } else if (after && fatal_entered_ && fatal_name_ == name) {
    dead_ = true;
  }
  if (dead_) died_.notify_all();
  return !dead_;
}

std::unique_ptr<Mounter> CrashingMounter(Mounter& real, CrashPlan& plan) {
  return std::make_unique<Mounts>(real, plan);
}
std::unique_ptr<PodCgroups> CrashingCgroups(PodCgroups& real, CrashPlan& plan) {
  return std::make_unique<Groups>(real, plan);
}
std::shared_ptr<client::Transport> CrashingTransport(std::shared_ptr<client::Transport> real,
                                                     CrashPlan& plan) {
  return std::make_shared<Wire>(std::move(real), plan);
}

}  // namespace keelson::kubelet
