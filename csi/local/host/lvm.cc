#include "csi/local/host/lvm.h"

#include <algorithm>

#include "csi/local/host/run.h"
#include "lib/base/text.h"

namespace keelson::csi::local {

namespace {

// A busy machine may take long; a command that hangs waits for a device that does not answer.
constexpr std::chrono::minutes kPatience(2);

bool Says(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

std::string Bytes(int64_t bytes) { return std::to_string(bytes) + "b"; }

std::vector<std::string> Report(const char* fields, const std::string& what) {
  return {"lvs",        "--reportformat", "json",      "--units", "b",
          "--nosuffix", "--binary",       "--options", fields,    what};
}

void AddTags(std::vector<std::string>& arguments, const std::vector<std::string>& tags) {
  for (const std::string& tag : tags) arguments.insert(arguments.end(), {"--addtag", tag});
}

}  // namespace

Result<std::string> Lvm::Run(const std::vector<std::string>& arguments) const {
  std::vector<std::string> argv = {"lvm"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  KEELSON_ASSIGN_OR_RETURN(Ended ended,
                           RunProgram(argv, {.timeout = kPatience, .survives = true, .apart = true}));
  if (ended.status.ok()) return std::move(ended.output);
  const std::string& said = ended.errors;
  const std::string message = "lvm " + arguments.front() + ": " + Join(Split(Trim(said), '\n'), "; ");
  if (Says(said, "insufficient free space") || Says(said, "Insufficient free space") ||
      Says(said, "is above threshold") || Says(said, "No space left on device")) {
    return Error(Code::kTooManyRequests, message);
  }
  if (Says(said, "not found") || Says(said, "Failed to find") || Says(said, "already exists") ||
      Says(said, "in use")) {
    return Error(Code::kConflict, message);
  }
  return ProgramError(argv, {ended.status, said, ""});
}

Result<ThinPool> Lvm::Pool() const {
  KEELSON_ASSIGN_OR_RETURN(const std::string report, Run(Report(kPoolFields, Path(options_.pool))));
  KEELSON_ASSIGN_OR_RETURN(ThinPool pool, ParsePool(report));
  if (pool.zeroes) return pool;
  return Error(Code::kConflict, "thin pool " + Path(options_.pool) +
                                    " does not zero new blocks, so volumes could show data of deleted ones "
                                    "(lvchange --zero y)");
}

Result<std::vector<LogicalVolume>> Lvm::Volumes() const {
  KEELSON_ASSIGN_OR_RETURN(const std::string report, Run(Report(kVolumeFields, options_.group)));
  KEELSON_ASSIGN_OR_RETURN(std::vector<LogicalVolume> volumes, ParseVolumes(report));
  std::erase_if(volumes, [&](const LogicalVolume& volume) {
    return !volume.HasTag(options_.tag) || volume.pool != options_.pool;
  });
  return volumes;
}

Result<LogicalVolume> Lvm::Volume(const std::string& name) const {
  KEELSON_ASSIGN_OR_RETURN(const std::string report, Run(Report(kVolumeFields, options_.group)));
  KEELSON_ASSIGN_OR_RETURN(std::vector<LogicalVolume> volumes, ParseVolumes(report));
  auto it = std::find_if(volumes.begin(), volumes.end(), [&](const auto& one) { return one.name == name; });
  if (it == volumes.end()) return Error(Code::kNotFound, "logical volume " + Path(name) + " does not exist");
  if (it->HasTag(options_.tag) && it->pool == options_.pool) return *it;
  return Error(Code::kConflict, "logical volume " + Path(name) + " is not this driver's");
}

Result<> Lvm::Create(const std::string& name, int64_t bytes, const std::vector<std::string>& marks) const {
  std::vector<std::string> arguments = {"lvcreate",
                                        "--yes",
                                        "--type",
                                        "thin",
                                        "--thinpool",
                                        options_.pool,
                                        "--name",
                                        name,
                                        "--virtualsize",
                                        Bytes(bytes),
                                        "--wipesignatures",
                                        "n",
                                        "--setactivationskip",
                                        "n",
                                        "--addtag",
                                        options_.tag};
  AddTags(arguments, marks);
  arguments.push_back(options_.group);
  KEELSON_RETURN_IF_ERROR(Run(arguments));
  return {};
}

Result<> Lvm::Snapshot(const LogicalVolume& from, const std::string& name,
                       const std::vector<std::string>& marks) const {
  std::vector<std::string> arguments = {
      "lvcreate", "--yes",      "--snapshot", "--name",   name,        "--setactivationskip",
      "n",        "--activate", "y",          "--addtag", options_.tag};
  AddTags(arguments, marks);
  arguments.push_back(Path(from.name));
  KEELSON_RETURN_IF_ERROR(Run(arguments));
  return {};
}

Result<> Lvm::Extend(const LogicalVolume& volume, int64_t bytes) const {
  if (volume.size >= bytes) return {};
  KEELSON_RETURN_IF_ERROR(Run({"lvextend", "--yes", "--size", Bytes(bytes), Path(volume.name)}));
  return {};
}

Result<> Lvm::Remove(const LogicalVolume& volume) const {
  KEELSON_RETURN_IF_ERROR(Run({"lvremove", "--yes", Path(volume.name)}));
  return {};
}

Result<> Lvm::Activate(const LogicalVolume& volume) const {
  if (volume.active) return {};
  KEELSON_RETURN_IF_ERROR(
      Run({"lvchange", "--yes", "--activate", "y", "--ignoreactivationskip", Path(volume.name)}));
  return {};
}

Result<> Lvm::SetMark(const LogicalVolume& volume, const std::string& mark, bool on) const {
  if (volume.HasTag(mark) == on) return {};
  KEELSON_RETURN_IF_ERROR(Run({"lvchange", "--yes", on ? "--addtag" : "--deltag", mark, Path(volume.name)}));
  return {};
}

}  // namespace keelson::csi::local
