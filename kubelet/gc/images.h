// Image garbage collection: removes unused images when their file system fills up, or when they get old.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "kubelet/cri/runtime.h"
#include "lib/base/clock.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct ImageGcOptions {
  int high_percent = 85, low_percent = 80;  // high 100: never because of space
  std::chrono::milliseconds minimum_age{std::chrono::minutes(2)}, maximum_age{0};  // maximum 0: any age
  // Called with the ids of all images as of that time; may be empty.
  std::function<void(const std::set<std::string>& ids, WallTime as_of)> present;
  std::string pause_image;  // never removed, even if the runtime does not pin it
};

struct ImageRecord {
  std::string id;
  WallTime first_detected, last_used;
  uint64_t size = 0;
  bool pinned = false, in_use = false;
};

struct FileSystemSpace {
  uint64_t capacity = 0, available = 0;
};
// Bytes to free to get down to the low threshold; 0: below the high one.
uint64_t BytesToFree(const FileSystemSpace& space, const ImageGcOptions& options);
// Images that may be removed, least recently used first.
std::vector<ImageRecord> RemovableImages(const std::map<std::string, ImageRecord>& images, WallTime now,
                                         std::chrono::milliseconds minimum_age);

class ImageGc {  // thread safe
 public:
  using SpaceFunction = std::function<Result<FileSystemSpace>(std::stop_token stop)>;
  // A warning event about the node.
  using EventFunction = std::function<void(const std::string& reason, const std::string& message)>;
  ImageGc(cri::RuntimeService& runtime, cri::ImageService& images, SpaceFunction space, EventFunction event,
          const ImageGcOptions& options, Clock& clock)
      : runtime_(runtime),
        images_(images),
        space_(std::move(space)),
        event_(std::move(event)),
        options_(options),
        clock_(clock) {}

  // One collection, by thresholds and maximum age. An error: too little could be freed, or the runtime failed.
  Result<> Collect(std::stop_token stop);
  // Removes all unused images that are old enough, for eviction.
  Result<> RemoveUnused(std::stop_token stop);
  void Run(std::stop_token stop);  // every five minutes

 private:
  // Images that containers run or mount, by all their names.
  Result<std::set<std::string>> InUse(std::stop_token stop) KEELSON_REQUIRES(mutex_);
  Result<> Detect(WallTime now, std::stop_token stop) KEELSON_REQUIRES(mutex_);
  // Returns the bytes freed.
  Result<uint64_t> Free(uint64_t bytes, WallTime now, std::stop_token stop) KEELSON_REQUIRES(mutex_);

  cri::RuntimeService& runtime_;
  cri::ImageService& images_;
  const SpaceFunction space_;
  const EventFunction event_;
  const ImageGcOptions options_;
  Clock& clock_;
  Mutex mutex_;  // held while the runtime is asked: one collection at a time
  std::map<std::string, ImageRecord> records_ KEELSON_GUARDED_BY(mutex_);
  // Image volumes by container: asked once, since they never change.
  std::map<std::string, std::set<std::string>> mounted_ KEELSON_GUARDED_BY(mutex_);
};

// The space on the runtime's image file system.
Result<FileSystemSpace> ImageSpace(cri::ImageService& images, std::stop_token stop);

}  // namespace keelson::kubelet
