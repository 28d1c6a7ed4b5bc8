#include "kubelet/gc/images.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <limits>

#include "kubelet/cri/pause_image.h"
#include "lib/base/log.h"
#include "lib/base/pause.h"
#include "lib/metrics/metrics.h"

namespace keelson::kubelet {

namespace {

constexpr std::chrono::minutes kPeriod(5);

// "512 B", "40.6 GiB".
std::string SizeText(uint64_t bytes) {
  constexpr std::string_view kUnits = "KMGTPE";
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; size >= 1024 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  return fmt::format("{:.1f} {}iB", size, kUnits[unit]);
}

uint64_t UsedPercent(const FileSystemSpace& space) {
  return 100 - std::min<uint64_t>(space.available * 100 / space.capacity, 100);
}

void CountCollected(const char* why) {
  static metrics::Family& family = metrics::Counter(
      "kubelet_image_garbage_collected_total",
      "Total number of images garbage collected by the kubelet, whether through disk usage or image age.",
      {"reason"});
  family.With({why}).Increment();
}

}  // namespace

uint64_t BytesToFree(const FileSystemSpace& space, const ImageGcOptions& options) {
  if (space.capacity == 0 || options.high_percent >= 100) return 0;
  if (UsedPercent(space) < static_cast<uint64_t>(options.high_percent)) return 0;
  const uint64_t wanted = space.capacity * static_cast<uint64_t>(100 - options.low_percent) / 100;
  return wanted > space.available ? wanted - space.available : 0;
}

std::vector<ImageRecord> RemovableImages(const std::map<std::string, ImageRecord>& images, WallTime now,
                                         std::chrono::milliseconds minimum_age) {
  std::vector<ImageRecord> out;
  for (const auto& [id, image] : images) {
    // An image that is young may have been pulled for a pod whose container is not made yet.
    if (!image.in_use && !image.pinned && now - image.first_detected >= minimum_age) out.push_back(image);
  }
  std::sort(out.begin(), out.end(), [](const ImageRecord& a, const ImageRecord& b) {
    if (a.last_used != b.last_used) return a.last_used < b.last_used;
    if (a.first_detected != b.first_detected) return a.first_detected < b.first_detected;
    return a.id < b.id;
  });
  return out;
}

Result<std::set<std::string>> ImageGc::InUse(std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(std::vector<cri::Container> containers, runtime_.ListContainers({}, stop));
  std::set<std::string> names;
  std::map<std::string, std::set<std::string>> mounted;
  for (cri::Container& container : containers) {
    names.insert(std::move(container.image));
    names.insert(std::move(container.image_ref));
    if (auto known = mounted_.extract(container.id)) {
      mounted.insert(std::move(known));
      continue;
    }
    auto status = runtime_.GetContainerStatus(container.id, stop);
    if (!status && status.error().Is(Code::kNotFound)) continue;
    if (!status) return status.error();  // nothing goes that may be in use
    std::set<std::string>& images = mounted[container.id];
    for (cri::Mount& mount : status->mounts) {
      if (!mount.image.empty()) images.insert(std::move(mount.image));
    }
  }
  mounted_ = std::move(mounted);
  for (const auto& [container, images] : mounted_) names.insert(images.begin(), images.end());
  return names;
}

Result<> ImageGc::Detect(WallTime now, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(std::set<std::string> used, InUse(stop));
  KEELSON_ASSIGN_OR_RETURN(std::vector<cri::Image> images, images_.ListImages(stop));
  std::map<std::string, ImageRecord> found;
  for (const cri::Image& image : images) {
    auto known = records_.find(image.id);
    ImageRecord record =
        known != records_.end() ? known->second : ImageRecord{image.id, now, WallTime(), 0, false, false};
    record.size = image.size;
    record.pinned = image.pinned;
    record.in_use = used.count(image.id) > 0;
    for (const auto* names : {&image.repo_tags, &image.repo_digests}) {
      for (const std::string& name : *names) {
        record.in_use = record.in_use || used.count(name);
        // Runtimes before containerd 1.7 do not say that they need it.
        record.pinned =
            record.pinned || cri::IsPauseImage(name) || (!name.empty() && name == options_.pause_image);
      }
    }
    if (record.in_use) record.last_used = now;
    found[image.id] = std::move(record);
  }
  records_ = std::move(found);
  if (options_.present) {
    std::set<std::string> ids;
    for (const auto& [id, record] : records_) ids.insert(id);
    options_.present(ids, now);
  }
  return {};
}

Result<uint64_t> ImageGc::Free(uint64_t bytes, WallTime now, std::stop_token stop) {
  uint64_t freed = 0;
  std::set<std::string> errors;
  for (const ImageRecord& image : RemovableImages(records_, now, options_.minimum_age)) {
    if (freed >= bytes || stop.stop_requested()) break;
    log::Info("Removing image to free bytes", {{"imageID", image.id}, {"size", image.size}});
    if (auto removed = images_.RemoveImage(image.id, stop); !removed) {
      errors.insert(removed.error().message());
      continue;
    }
    CountCollected("space");
    records_.erase(image.id);
    freed += image.size;
  }
  if (errors.empty()) return freed;
  const std::string text = fmt::format("{}", fmt::join(errors, ", "));
  return Error(
      Code::kUnavailable,
      fmt::format("wanted to free {} bytes, but freed {} bytes space with errors in image deletion: {}",
                  bytes, freed, errors.size() == 1 ? text : "[" + text + "]"));
}

Result<> ImageGc::Collect(std::stop_token stop) {
  MutexLock lock(mutex_);
  const WallTime now = clock_.Now();
  KEELSON_RETURN_IF_ERROR(Detect(now, stop));
  if (options_.maximum_age.count() > 0) {
    for (const ImageRecord& image : RemovableImages(records_, now, options_.minimum_age)) {
      const WallTime since = std::max(image.last_used, image.first_detected);
      if (now - since <= options_.maximum_age) continue;
      if (!images_.RemoveImage(image.id, stop)) continue;
      CountCollected("age");
      records_.erase(image.id);
    }
  }
  KEELSON_ASSIGN_OR_RETURN(FileSystemSpace space, space_(stop));
  if (space.capacity == 0) {
    event_("InvalidDiskCapacity", "invalid capacity 0 on image filesystem");
    return Error(Code::kUnavailable, "invalid capacity 0 on image filesystem");
  }
  const uint64_t wanted = BytesToFree(space, options_);
  if (wanted == 0) return {};
  KEELSON_ASSIGN_OR_RETURN(uint64_t freed, Free(wanted, now, stop));
  if (freed >= wanted) return {};
  const std::string message = fmt::format(
      "Insufficient free disk space on the node's image filesystem ({}% of {} used). Failed to free "
      "sufficient space by deleting unused images (freed {} bytes). Investigate disk usage, as it could be "
      "used by active images, logs, volumes, or other data.",
      UsedPercent(space), SizeText(space.capacity), freed);
  event_("FreeDiskSpaceFailed", message);
  return Error(Code::kUnavailable, message);
}

Result<> ImageGc::RemoveUnused(std::stop_token stop) {
  MutexLock lock(mutex_);
  const WallTime now = clock_.Now();
  KEELSON_RETURN_IF_ERROR(Detect(now, stop));
  auto freed = Free(std::numeric_limits<int64_t>::max(), now, stop);
  if (!freed) return freed.error();
  return {};
}

void ImageGc::Run(std::stop_token stop) {
  bool failed_before = false;
  do {
    auto collected = Collect(stop);
    if (stop.stop_requested()) return;
    if (!collected) {
      log::Warn("Image garbage collection failed", {{"err", collected.error()}});
      // Once may be a runtime that is only just up.
      if (failed_before) event_("ImageGCFailed", collected.error().message());
    }
    failed_before = !collected;
  } while (Pause(clock_, kPeriod, stop));
}

Result<FileSystemSpace> ImageSpace(cri::ImageService& images, std::stop_token stop) {
  KEELSON_ASSIGN_OR_RETURN(const cri::ImageFilesystems systems, images.ImageFsInfo(stop));
  for (const cri::FilesystemUsage& system : systems.images) {
    struct statvfs disk = {};
    if (::statvfs(system.mountpoint.c_str(), &disk) != 0) return ErrnoError("statvfs " + system.mountpoint);
    return FileSystemSpace{disk.f_blocks * disk.f_frsize, disk.f_bavail * disk.f_frsize};
  }
  return Error(Code::kUnavailable, "imageFs information is unavailable");
}

}  // namespace keelson::kubelet
