#include "cni/host-local/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>

#include "lib/base/file.h"

namespace keelson::cni {
namespace {

constexpr std::string_view kLineBreak = "\r\n";

Attachment ParseOwner(std::string_view text) {
  auto end = text.find(kLineBreak);
  if (end == std::string_view::npos) return {std::string(text), ""};
  std::string_view ifname = text.substr(end + kLineBreak.size());
  while (!ifname.empty() && (ifname.back() == '\n' || ifname.back() == '\r')) ifname.remove_suffix(1);
  return {std::string(text.substr(0, end)), std::string(ifname)};
}

// Entries of versions that did not write the interface belong to any interface of their container.
bool Matches(const Attachment& held, const Attachment& owner) {
  return held.container_id == owner.container_id && (held.ifname.empty() || held.ifname == owner.ifname);
}

}  // namespace

Result<Store> Store::Open(const std::string& dir) {
  RETURN_IF_ERROR(MakeDirs(dir));
  ASSIGN_OR_RETURN(UniqueFd lock, OpenFile(dir + "/lock", O_RDWR | O_CREAT, 0600));
  while (::flock(lock.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return ErrnoError("lock " + dir);
  }
  return Store(dir, std::move(lock));
}

Result<std::vector<Store::Entry>> Store::Entries() const {
  std::vector<Entry> out;
  ASSIGN_OR_RETURN(std::vector<std::string> names, ListDir(dir_));
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

Result<bool> Store::Reserve(const IpAddress& address, const Attachment& owner) {
  std::string path = PathOf(address), aside = dir_ + "/.new";
  RETURN_IF_ERROR(RemoveFile(aside));
  RETURN_IF_ERROR(WriteFile(aside, owner.container_id + std::string(kLineBreak) + owner.ifname, 0600));
  for (bool retried = false;; retried = true) {
    if (::link(aside.c_str(), path.c_str()) == 0) break;
    if (errno != EEXIST) return ErrnoError("reserve " + path);
    Result<std::string> held = ReadFile(path);
    if (retried || !held || !held->empty()) {
      RETURN_IF_ERROR(RemoveFile(aside));
      return false;
    }
    RETURN_IF_ERROR(RemoveFile(path));
  }
  RETURN_IF_ERROR(RemoveFile(aside));
  return true;
}

Result<std::vector<IpAddress>> Store::HeldBy(const Attachment& owner) const {
  ASSIGN_OR_RETURN(std::vector<Entry> entries, Entries());
  std::vector<IpAddress> out;
  for (const Entry& entry : entries) {
    if (Matches(entry.owner, owner)) out.push_back(entry.address);
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<> Store::Release(const Attachment& owner) {
  ASSIGN_OR_RETURN(std::vector<IpAddress> held, HeldBy(owner));
  for (const IpAddress& address : held) RETURN_IF_ERROR(ReleaseAddress(address));
  return {};
}

Result<> Store::ReleaseAllBut(const std::vector<Attachment>& valid) {
  ASSIGN_OR_RETURN(std::vector<Entry> entries, Entries());
  for (const Entry& entry : entries) {
    bool keep =
        std::any_of(valid.begin(), valid.end(), [&](const Attachment& a) { return Matches(entry.owner, a); });
    if (!keep) RETURN_IF_ERROR(ReleaseAddress(entry.address));
  }
  return {};
}

Result<> Store::ReleaseAddress(const IpAddress& address) { return RemoveFile(PathOf(address)); }

std::optional<IpAddress> Store::LastReserved(size_t range_set) const {
  Result<std::string> text = ReadFile(dir_ + "/last_reserved_ip." + std::to_string(range_set));
  if (!text) return std::nullopt;
  Result<IpAddress> address = IpAddress::Parse(*text);
  if (!address) return std::nullopt;
  return *address;
}

Result<> Store::SetLastReserved(size_t range_set, const IpAddress& address) {
  // A hint: torn or lost, the search starts elsewhere.
  return WriteFile(dir_ + "/last_reserved_ip." + std::to_string(range_set), address.ToString(), 0600);
}

}  // namespace keelson::cni
