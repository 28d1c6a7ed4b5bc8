// Records on disk which container holds which address, with one lock per network:
//
//   /var/lib/cni/networks/NAME/
//     lock                       flock(2) during any access
//     10.1.0.7                   held: "CONTAINERID\r\nIFNAME"
//     last_reserved_ip.0         where the search of the first range set continues
//     owner@CONTAINERID@IFNAME   "10.1.0.7\n...": a container's addresses, to avoid reading all files
//
// All but the last are the CNI reference plugin's files, and its entries are understood. A container's
// owner file is written before its addresses and removed after them: without one, this program has reserved
// nothing. A reservation appears complete or not at all, by rename. So a killed plugin leaves at most an
// owner file that lists too much, or a stray file without a reader. The files must survive a process, not
// a power failure: after that no container is left either, and an empty reservation (left by a lost write)
// counts as free.
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
  // Makes the directory if necessary and waits for the lock, which the object holds until it is destroyed.
  static Result<Store> Open(const std::string& dir);

  bool IsFree(const IpAddress& address);
  // Reserves free addresses, all or none. Afterwards the owner holds these and `kept`.
  Result<> Reserve(const Attachment& owner, const std::vector<IpAddress>& addresses,
                   const std::vector<IpAddress>& kept);

  // The owner's addresses, sorted: from the owner file or, without one and if `thorough`, from all entries.
  Result<std::vector<IpAddress>> HeldBy(const Attachment& owner, bool thorough) const;
  // Releases all addresses of `owner`; none is fine.
  Result<> Release(const Attachment& owner);
  // Releases the addresses of all attachments that are not in `valid`.
  Result<> ReleaseAllBut(const std::vector<Attachment>& valid);

  std::optional<IpAddress> LastReserved(size_t range_set) const;
  // Only a hint: if it is lost, the search starts elsewhere.
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
  int probes_ = 0;                             // number of IsFree() calls, each of which reads a file
  std::optional<std::set<std::string>> busy_;  // all names in the directory, once there were many probes
};

}  // namespace keelson::cni
