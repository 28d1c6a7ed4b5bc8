// Which container holds which address, on disk, under one lock a network:
//
//   /var/lib/cni/networks/NAME/
//     lock                  flock(2) while anyone works here
//     10.1.0.7              held: "CONTAINERID\r\nIFNAME"
//     last_reserved_ip.0    where the search of the first range set goes on
//     owner@CONTAINERID@IFNAME   "10.1.0.7\n...": what a container holds, so that nobody need read all files
//
// All but the last are the CNI reference plugin's, and entries that it made are understood. A container's
// owner file is written before its addresses and removed after them: where there is none, this program has
// reserved nothing. A reservation appears complete or not at all, by rename. So a plugin that is killed
// leaves at most an owner file that says too much, or a stray file that nobody looks at. All this has to
// outlive processes, not the power: after that no container is left either, and an empty reservation (what a
// lost write leaves) counts as free.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cni/lib/plugin.h"
#include "lib/base/fd.h"

namespace keelson::cni {

class Store {
 public:
  // Makes the directory if need be and waits for the lock, which is held until the object ends.
  static Result<Store> Open(const std::string& dir);

  bool IsFree(const IpAddress& address);
  // Addresses that are free; all or none. Afterwards the owner holds these and `kept`.
  Result<> Reserve(const Attachment& owner, const std::vector<IpAddress>& addresses,
                   const std::vector<IpAddress>& kept);

  // In order. By the owner file; without one and if `thorough`, by reading all entries.
  Result<std::vector<IpAddress>> HeldBy(const Attachment& owner, bool thorough) const;
  Result<> Release(const Attachment& owner);
  Result<> ReleaseAllBut(const std::vector<Attachment>& valid);

  std::optional<IpAddress> LastReserved(size_t range_set) const;
  // A hint: torn or lost, the search starts elsewhere.
  void SetLastReserved(size_t range_set, const IpAddress& address);

 private:
  Store(std::string dir, UniqueFd lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}
  std::string PathOf(const IpAddress& address) const { return dir_ + "/" + address.ToString(); }
  std::string OwnerPath(const Attachment& owner) const;
  Result<bool> IsHeldBy(const IpAddress& address, const Attachment& owner) const;
  Result<> WriteReservations(const Attachment& owner, const std::vector<IpAddress>& addresses);
  struct Entry {
    IpAddress address;
    Attachment owner;
  };
  Result<std::vector<Entry>> Entries(const std::vector<std::string>& names) const;

  std::string dir_;
  UniqueFd lock_;
  int probes_ = 0;                             // of IsFree, one file each
  std::optional<std::set<std::string>> busy_;  // all names there, once probes have become many
};

}  // namespace keelson::cni
