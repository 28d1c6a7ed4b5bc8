#include <algorithm>

#include "controlplane/scheduler/plugins/plugins.h"

namespace keelson::scheduler {

namespace {

constexpr int64_t kMegabyte = 1024 * 1024;
constexpr int64_t kLittle = 23 * kMegabyte;          // below, it does not count
constexpr int64_t kMuchPerImage = 1000 * kMegabyte;  // above, more does not count more

class ImageLocality : public ScorePlugin {
 public:
  std::string_view name() const override { return "ImageLocality"; }

  // What an image counts for depends on how many nodes have it.
  uint64_t epoch(const Snapshot& snapshot) const override { return snapshot.images_epoch(); }
  Status PreScore(CycleState&, const PodInfo&, const Snapshot& snapshot, std::span<const uint32_t>) override {
    snapshot_ = &snapshot;
    return {};
  }
  int64_t Score(const CycleState&, const PodInfo& pod, const NodeInfo& node) override {
    const auto& images = node.facts->images;
    const auto users = static_cast<int64_t>(pod.shape->image_users);
    if (images.empty() || users == 0) return 0;
    int64_t sum = 0;
    for (const std::string& name : pod.shape->images) {
      const auto it =
          std::lower_bound(images.begin(), images.end(), name,
                           [](const auto& image, const std::string& n) { return image.first < n; });
      if (it == images.end() || it->first != name) continue;
      // Where few nodes have it, it would draw all pods to them.
      const double spread =
          static_cast<double>(snapshot_->NodesWithImage(name)) / static_cast<double>(snapshot_->count());
      sum += static_cast<int64_t>(static_cast<double>(it->second) * spread);
    }
    const int64_t much = kMuchPerImage * users;
    return kMaxNodeScore * (std::clamp(sum, kLittle, much) - kLittle) / (much - kLittle);
  }

 private:
  const Snapshot* snapshot_ = nullptr;  // of the present cycle
};

}  // namespace

std::unique_ptr<Plugin> NewImageLocality() { return std::make_unique<ImageLocality>(); }

}  // namespace keelson::scheduler
