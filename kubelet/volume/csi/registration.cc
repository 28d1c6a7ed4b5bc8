#include "kubelet/volume/csi/registration.h"

#include "lib/base/log.h"

namespace keelson::kubelet::csi {

namespace {

// As Go prints a slice of strings with %q.
std::string Quoted(const std::vector<std::string>& versions) {
  std::string out = "[";
  for (const std::string& version : versions) out += (out.size() > 1 ? " \"" : "\"") + version + "\"";
  return out + "]";
}

}  // namespace

Result<Version> Registration::CheckVersions(const char* caller, const std::string& name,
                                            const std::string& endpoint,
                                            const std::vector<std::string>& versions) const {
  const std::string what =
      std::string("kubernetes.io/csi: ") + caller + " for CSI driver \"" + name + "\" failed. ";
  if (versions.empty()) {
    return Error(Code::kInvalid, what + "Plugin returned an empty list for supported versions");
  }
  auto highest = HighestSupportedVersion(versions);
  if (!highest) {
    return Error(Code::kInvalid, what + "None of the versions specified " + Quoted(versions) +
                                     " are supported. err=" + highest.error().message());
  }
  const Driver there = deps_.drivers.Find(name);
  if (there.client && there.endpoint != endpoint && !(there.version < *highest)) {
    return Error(Code::kAlreadyExists,
                 what +
                     "Another driver with the same name is already registered with a higher supported "
                     "version: \"" +
                     there.version.text + "\"");
  }
  return highest;
}

Result<> Registration::Validate(const std::string& name, const std::string& endpoint,
                                const std::vector<std::string>& versions) {
  auto version = CheckVersions("ValidatePlugin", name, endpoint, versions);
  if (version) return {};
  return version.error().Wrap("validation failed for CSI Driver " + name + " at endpoint " + endpoint);
}

Result<> Registration::Record(const std::string& name, NodeClient& client, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const NodeInfo info, client.GetInfo(stop));
  return deps_.node_info.Install(name, info, std::move(stop));
}

Result<> Registration::Register(const std::string& name, const std::string& endpoint,
                                const std::vector<std::string>& versions, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(Version version, CheckVersions("RegisterPlugin", name, endpoint, versions));
  const std::shared_ptr<NodeClient> client = deps_.dial(name, endpoint);
  deps_.drivers.Set(name, {endpoint, std::move(version), client});
  auto recorded = Record(name, *client, std::move(stop));
  if (!recorded) Undo(name, endpoint);
  Look();
  return recorded;
}

void Registration::Undo(const std::string& name, const std::string& endpoint) {
  deps_.drivers.Remove(name, endpoint);
  if (deps_.drivers.Find(name).client) return;  // of another endpoint: the entries are its own
  if (auto done = deps_.node_info.Uninstall(name, {}); !done) {
    log::Error("Error uninstalling CSI driver", {{"driver", name}, {"err", done.error()}});
  }
}

void Registration::Deregister(const std::string& name, const std::string& endpoint) {
  Undo(name, endpoint);
  Look();
}

void Registration::Look() {
  MutexLock lock(mutex_);
  looked_ = true;
  wake_.notify_all();
}

void Registration::UpdateSoon(const std::string& name) {
  MutexLock lock(mutex_);
  asked_.insert(name);
  looked_ = true;
  wake_.notify_all();
}

void Registration::Update(const std::string& name, std::stop_token stop) {
  auto client = deps_.drivers.Client(name);
  if (!client) return;
  auto info = (*client)->GetInfo(stop);
  auto done = info ? deps_.node_info.Update(name, *info, stop) : Result<>(info.error());
  if (!done && !stop.stop_requested()) {
    log::Error("Failed to update CSIDriver", {{"driver", name}, {"err", done.error()}});
  }
}

void Registration::RunUpdates(std::stop_token stop) {
  std::stop_callback wake(stop, [this] { Look(); });
  std::map<std::string, Due> dues;
  while (!stop.stop_requested()) {
    std::set<std::string> asked;
    {
      MutexLock lock(mutex_);
      asked = std::exchange(asked_, {});
    }
    const SteadyTime now = clock_.SteadyNow();
    std::optional<SteadyTime> first;
    std::map<std::string, Due> current;
    for (const std::string& name : deps_.drivers.Names()) {
      const auto period = deps_.update_period(name);
      if (!period || period->count() <= 0) continue;
      auto before = dues.find(name);
      Due due{*period, now + *period};
      if (before != dues.end() && before->second.period == *period) due.next = before->second.next;
      if (due.next <= now || asked.count(name)) {
        Update(name, stop);
        due.next = now + *period;
      }
      first = first ? std::min(*first, due.next) : due.next;
      current[name] = due;
    }
    dues = std::move(current);
    MutexLock lock(mutex_);
    while (!looked_ && !first) wake_.wait(mutex_);
    while (!looked_ && clock_.SteadyNow() < *first) clock_.WaitUntil(mutex_, wake_, *first);
    looked_ = false;
  }
}

}  // namespace keelson::kubelet::csi
