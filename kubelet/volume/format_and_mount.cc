#include "kubelet/volume/format_and_mount.h"

#include "lib/base/log.h"
#include "lib/base/text.h"

namespace keelson::kubelet {

namespace {

// Bits of fsck(8)'s exit code.
constexpr int kRepaired = 1, kNotRepaired = 4;

const std::string& TypeOf(const DiskMount& wanted) {
  static const std::string kDefault = "ext4";
  return wanted.fs_type.empty() ? kDefault : wanted.fs_type;
}

bool IsExt(const std::string& type) { return type == "ext2" || type == "ext3" || type == "ext4"; }

std::vector<std::string> FormatCommand(const std::string& type, const std::string& device) {
  std::vector<std::string> argv = {"mkfs." + type};
  // -F: it is no partition, and that is fine; -m0: no room set aside for root; -f: what is there is nothing.
  if (type == "ext3" || type == "ext4") argv.insert(argv.end(), {"-F", "-m0"});
  if (type == "xfs") argv.push_back("-f");
  argv.push_back(device);
  return argv;
}

Result<> Format(Disks& disks, const DiskMount& wanted, const std::vector<std::string>& argv) {
  log::Info("Disk appears to be unformatted, attempting to format",
            {{"device", wanted.device}, {"command", Join(argv, " ")}});
  auto end = disks.Run(argv);
  if (end && end->ok()) return {};
  const std::string why = end ? end->Why() : end.error().message();
  return Error(end ? Code::kUnavailable : end.error().code(),
               "format of disk \"" + wanted.device + "\" failed: type:(\"" + TypeOf(wanted) +
                   "\") target:(\"" + wanted.target + "\") options:(\"" + Join(wanted.options, ",") +
                   "\") errcode:(" + why + ") output:(" + (end ? end->output : "") + ")");
}

// A check that could not run does not prevent the mount: the kernel checks for itself.
Result<> Check(Disks& disks, const std::string& device, const std::vector<std::string>& argv) {
  auto end = disks.Run(argv);
  if (end && end->ok()) return {};
  if (!end || !end->status || end->status->signal != 0) {
    log::Warn("fsck did not run to its end",
              {{"device", device}, {"err", end ? end->Why() : end.error().message()}});
    return {};
  }
  const int code = end->status->code;
  if (code & kNotRepaired) {
    return Error(Code::kUnavailable,
                 "'fsck' found errors on device " + device + " but could not correct them: " + end->output);
  }
  log::Warn(code & kRepaired ? "Device had errors which were corrected by fsck" : "fsck failed",
            {{"device", device}, {"exit", end->Why()}, {"output", end->output}});
  return {};
}

}  // namespace

bool DiskMount::read_only() const {
  // Each may hold several.
  return ("," + Join(options, ",") + ",").find(",ro,") != std::string::npos;
}

Result<DiskWork> PlanDisk(const linux::DiskContents& found, const DiskMount& wanted) {
  const std::string& type = TypeOf(wanted);
  // It becomes part of a program's name.
  if (type.find('/') != std::string::npos) return Error(Code::kInvalid, "invalid fsType \"" + type + "\"");
  if (found.blank()) {
    if (wanted.read_only()) {
      return Error(Code::kInvalid,
                   "cannot mount unformatted disk " + wanted.device + " as it is in read-only mode");
    }
    return DiskWork{FormatCommand(type, wanted.device), {}, ""};
  }
  DiskWork work;
  // Nothing is mended on what may be somebody else's. Drivers of ext4 mount the older ones too.
  const bool known = found.fs_type == type || (IsExt(found.fs_type) && IsExt(type));
  if (known && !wanted.read_only()) work.check = {"fsck", "-a", wanted.device};
  const std::string format =
      found.partition_table.empty() ? found.fs_type : "unknown data, probably partitions";
  if (format != type) {
    work.doubt =
        "Configured to mount disk " + wanted.device + " as " + type + " but current format is " + format;
  }
  return work;
}

Result<> FormatAndMount(Mounter& mounter, const DiskMount& wanted, std::stop_token stop) {
  Disks& disks = mounter.disks();
  auto found = disks.Probe(wanted.device);
  if (!found) return found.error().Wrap("failed to get disk format of disk " + wanted.device);
  KEELSON_ASSIGN_OR_RETURN(const DiskWork work, PlanDisk(*found, wanted));
  if (!work.format.empty()) KEELSON_RETURN_IF_ERROR(Format(disks, wanted, work.format));
  if (!work.doubt.empty()) log::Warn(work.doubt + ", things might break");
  if (!work.check.empty()) KEELSON_RETURN_IF_ERROR(Check(disks, wanted.device, work.check));
  auto mounted = mounter.Mount(wanted.device, wanted.target, TypeOf(wanted), wanted.options, stop);
  if (mounted || work.doubt.empty()) return mounted;
  return Error(mounted.error().code(), mounted.error().message() + "\n" + work.doubt);
}

Result<> GrowFileSystem(Disks& disks, const std::string& device, const std::string& mounted_at) {
  auto found = disks.Probe(device);
  if (!found) return found.error().Wrap("error checking format for device " + device);
  const std::string& type = found->fs_type;
  std::vector<std::string> argv;
  if (type == "ext3" || type == "ext4") argv = {"resize2fs", device};
  if (type == "xfs") argv = {"xfs_growfs", "-d", mounted_at};
  if (type == "btrfs") argv = {"btrfs", "filesystem", "resize", "max", mounted_at};
  if (argv.empty()) {
    return Error(Code::kUnimplemented, "resize of format " + type + " is not supported for device " + device +
                                           " mounted at " + mounted_at);
  }
  auto end = disks.Run(argv);
  if (end && end->ok()) return {};
  return Error(end ? Code::kUnavailable : end.error().code(),
               "resize of device " + argv.back() + " failed: " + (end ? end->Why() : end.error().message()) +
                   ". " + argv.front() + " output: " + (end ? end->output : ""));
}

}  // namespace keelson::kubelet
