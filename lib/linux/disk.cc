#include "lib/linux/disk.h"

#include <blkid/blkid.h>
#include <fcntl.h>

#include <cerrno>
#include <memory>

#include "lib/base/fd.h"
#include "lib/base/file.h"

namespace keelson::linux {

namespace {

constexpr int kFound = 0, kNothing = 1, kAmbivalent = -2;  // of blkid_do_safeprobe

struct FreeProbe {
  void operator()(blkid_probe probe) const { blkid_free_probe(probe); }
};
using Probe = std::unique_ptr<blkid_struct_probe, FreeProbe>;

std::string Value(const Probe& probe, const char* name) {
  const char* text = nullptr;
  return blkid_probe_lookup_value(probe.get(), name, &text, nullptr) == 0 ? text : "";
}

}  // namespace

Result<DiskContents> ProbeDisk(const std::string& device) {
  KEELSON_ASSIGN_OR_RETURN(UniqueFd fd, OpenFile(device, O_RDONLY | O_NONBLOCK));
  Probe probe(blkid_new_probe());
  if (!probe) return Error(Code::kInternal, "cannot make a probe of " + device);
  errno = 0;
  if (blkid_probe_set_device(probe.get(), fd.get(), 0, 0) != 0) {
    return Error::FromErrno(errno != 0 ? errno : EIO, "probe " + device);
  }
  // A device without a size (a loop device without a file, a drive without a medium) cannot hold anything.
  if (blkid_probe_get_size(probe.get()) <= 0) return Error::FromErrno(ENOMEDIUM, "probe " + device);
  blkid_probe_enable_superblocks(probe.get(), 1);
  blkid_probe_set_superblocks_flags(probe.get(), BLKID_SUBLKS_TYPE | BLKID_SUBLKS_BADCSUM);
  blkid_probe_enable_partitions(probe.get(), 1);
  errno = 0;
  const int found = blkid_do_safeprobe(probe.get());
  if (found == kNothing) return DiskContents{};
  if (found == kFound) return DiskContents{Value(probe, "TYPE"), Value(probe, "PTTYPE")};
  if (found == kAmbivalent) {
    return Error(Code::kInvalid,
                 device + ": ambivalent result (probably more file systems or a partition table beside one)");
  }
  return Error::FromErrno(errno != 0 ? errno : EIO, "probe " + device);
}

}  // namespace keelson::linux
