// Which container holds which address, on disk, under one lock a network:
//
//   /var/lib/cni/networks/NAME/
//     lock                  flock(2) while anyone works here
//     10.1.0.7              held: "CONTAINERID\r\nIFNAME"
//     last_reserved_ip.0    where the search of the first range set goes on
//
// A reservation appears complete or not at all: it is written aside and linked into place, so a killed
// plugin leaves at most a stray file that nobody looks at. It has to outlive processes, not the power:
// after that no container is left either, and an empty file (what a lost write leaves) counts as free.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cni/lib/plugin.h"
#include "lib/base/fd.h"

namespace keelson::cni {

class Store {
 public:
  // Makes the directory if need be and waits for the lock, which is held until the object ends.
  static Result<Store> Open(const std::string& dir);

  // False when somebody holds the address already.
  Result<bool> Reserve(const IpAddress& address, const Attachment& owner);
  Result<std::vector<IpAddress>> HeldBy(const Attachment& owner) const;
  Result<> Release(const Attachment& owner);
  Result<> ReleaseAllBut(const std::vector<Attachment>& valid);
  Result<> ReleaseAddress(const IpAddress& address);

  std::optional<IpAddress> LastReserved(size_t range_set) const;
  Result<> SetLastReserved(size_t range_set, const IpAddress& address);

 private:
  Store(std::string dir, UniqueFd lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}
  std::string PathOf(const IpAddress& address) const { return dir_ + "/" + address.ToString(); }
  struct Entry {
    IpAddress address;
    Attachment owner;
  };
  Result<std::vector<Entry>> Entries() const;

  std::string dir_;
  UniqueFd lock_;
};

}  // namespace keelson::cni
