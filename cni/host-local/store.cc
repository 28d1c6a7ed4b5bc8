#include "cni/host-local/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "cni/lib/label.h"
#include "lib/base/file.h"

namespace keelson::cni {
namespace {

constexpr std::string_view kLineBreak = "\r\n";
constexpr std::string_view kOwnerPrefix = "owner@";
constexpr int kProbesBeforeListing = 32;

Attachment ParseOwner(std::string_view text) {
  auto end = text.find(kLineBreak);
  if (end == std::string_view::npos) return {std::string(text), ""};
  std::string_view ifname = text.substr(end + kLineBreak.size());
  while (!ifname.empty() && (ifname.back() == '\n' || ifname.back() == '\r')) ifname.remove_suffix(1);
  return {std::string(text.substr(0, end)), std::string(ifname)};
}

// Entries of old versions without an interface match any interface of their container.
bool Matches(const Attachment& held, const Attachment& owner) {
  return held.container_id == owner.container_id && (held.ifname.empty() || held.ifname == owner.ifname);
}

std::string OwnerFile(const Attachment& owner) {
  std::string name = LabelOf("", owner).substr(1);
  std::replace(name.begin(), name.end(), '/', '@');
  return std::string(kOwnerPrefix) + name;
}

}  // namespace

Result<Store> Store::Open(const std::string& dir) {
  Result<UniqueFd> lock = OpenFile(dir + "/lock", O_RDWR | O_CREAT, 0600);
  if (!lock && lock.error().Is(Code::kNotFound)) {
    KEELSON_RETURN_IF_ERROR(MakeDirs(dir));
    lock = OpenFile(dir + "/lock", O_RDWR | O_CREAT, 0600);
  }
  if (!lock) return lock.error();
  while (::flock(lock->get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoError("lock " + dir);
  }
  return Store(dir, std::move(*lock));
}

std::string Store::OwnerPath(const Attachment& owner) const { return dir_ + "/" + OwnerFile(owner); }

bool Store::IsFree(const IpAddress& address) {
  if (!busy_ && ++probes_ > kProbesBeforeListing) {
    if (Result<std::vector<std::string>> names = ListDir(dir_)) busy_.emplace(names->begin(), names->end());
  }
  if (busy_ && !busy_->contains(address.ToString())) return true;
  struct stat status;
  return ::stat(PathOf(address).c_str(), &status) != 0 ? errno == ENOENT : status.st_size == 0;
}

Result<> Store::WriteReservations(const Attachment& owner, const std::vector<IpAddress>& addresses) {
  std::string aside = dir_ + "/.new";
  for (const IpAddress& address : addresses) {
    KEELSON_RETURN_IF_ERROR(
        WriteFile(aside, owner.container_id + std::string(kLineBreak) + owner.ifname, 0600));
    if (::rename(aside.c_str(), PathOf(address).c_str()) != 0) {
      return ErrnoError("reserve " + PathOf(address));
    }
  }
  return {};
}

Result<> Store::Reserve(const Attachment& owner, const std::vector<IpAddress>& addresses,
                        const std::vector<IpAddress>& kept) {
  if (addresses.empty()) return {};
  auto list = [](std::string text, const IpAddress& address) { return text + address.ToString() + "\n"; };
  std::string before = std::accumulate(kept.begin(), kept.end(), std::string(), list);
  std::string after = std::accumulate(addresses.begin(), addresses.end(), before, list);
  Result<> written = WriteFile(OwnerPath(owner), after, 0600);
  if (written) written = WriteReservations(owner, addresses);
  if (written) return {};
  (void)RemoveFile(dir_ + "/.new");
  for (const IpAddress& address : addresses) (void)RemoveFile(PathOf(address));
  if (before.empty() || !WriteFile(OwnerPath(owner), before, 0600)) (void)RemoveFile(OwnerPath(owner));
  return written;
}

Result<bool> Store::IsHeldBy(const IpAddress& address, const Attachment& owner) const {
  Result<std::string> text = ReadFile(PathOf(address));
  if (!text && text.error().Is(Code::kNotFound)) return false;
  if (!text) return text.error();
  return Matches(ParseOwner(*text), owner);
}

Result<std::vector<IpAddress>> Store::HeldBy(const Attachment& owner, bool thorough) const {
  std::vector<IpAddress> out;
  Result<std::string> listed = ReadFile(OwnerPath(owner));
  if (listed) {
    for (size_t begin = 0; begin < listed->size();) {
      size_t end = std::min(listed->find('\n', begin), listed->size());
      Result<IpAddress> address = IpAddress::Parse(std::string_view(*listed).substr(begin, end - begin));
      begin = end + 1;
      if (!address) continue;
      KEELSON_ASSIGN_OR_RETURN(bool held, IsHeldBy(*address, owner));
      if (held) out.push_back(*address);
    }
  } else if (thorough) {
    KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(dir_));
    KEELSON_ASSIGN_OR_RETURN(std::vector<Entry> entries, Entries(names));
    for (const Entry& entry : entries) {
      if (Matches(entry.owner, owner)) out.push_back(entry.address);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<std::vector<Store::Entry>> Store::Entries(const std::vector<std::string>& names) const {
  std::vector<Entry> out;
  for (const std::string& name : names) {
    Result<IpAddress> address = IpAddress::Parse(name);
    if (!address) continue;
    Result<std::string> text = ReadFile(dir_ + "/" + name);
    if (!text && text.error().Is(Code::kNotFound)) continue;
    if (!text) return text.error();
    out.push_back({*address, ParseOwner(*text)});
  }
  return out;
}

Result<> Store::Release(const Attachment& owner) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<IpAddress> held, HeldBy(owner, true));
  for (const IpAddress& address : held) KEELSON_RETURN_IF_ERROR(RemoveFile(PathOf(address)));
  return RemoveFile(OwnerPath(owner));
}

Result<> Store::ReleaseAllBut(const std::vector<Attachment>& valid) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(dir_));
  KEELSON_ASSIGN_OR_RETURN(std::vector<Entry> entries, Entries(names));
  for (const Entry& entry : entries) {
    bool keep =
        std::any_of(valid.begin(), valid.end(), [&](const Attachment& a) { return Matches(entry.owner, a); });
    if (!keep) KEELSON_RETURN_IF_ERROR(RemoveFile(PathOf(entry.address)));
  }
  std::set<std::string> owners;
  for (const Attachment& attachment : valid) owners.insert(OwnerFile(attachment));
  for (const std::string& name : names) {
    if (name.starts_with(kOwnerPrefix) && !owners.contains(name)) {
      KEELSON_RETURN_IF_ERROR(RemoveFile(dir_ + "/" + name));
    }
  }
  return {};
}

std::optional<IpAddress> Store::LastReserved(size_t range_set) const {
  Result<std::string> text = ReadFile(dir_ + "/last_reserved_ip." + std::to_string(range_set));
  if (!text) return std::nullopt;
  Result<IpAddress> address = IpAddress::Parse(*text);
  if (!address) return std::nullopt;
  return *address;
}

void Store::SetLastReserved(size_t range_set, const IpAddress& address) {
  (void)WriteFile(dir_ + "/last_reserved_ip." + std::to_string(range_set), address.ToString(), 0600);
}

}  // namespace keelson::cni
