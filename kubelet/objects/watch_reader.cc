#include "kubelet/objects/kept_objects.h"
#include "lib/base/log.h"

namespace keelson::kubelet {

namespace {

// A watch that has ended is begun anew with a list, which also tells what went unseen.
class WatchReader : public KeptObjects {
 public:
  using KeptObjects::KeptObjects;

 private:
  bool IsFresh(KeptObject& kept) REQUIRES(kept.busy) override {
    if (NeverChanges(kept.object)) return true;
    if (kept.watch && !kept.watch->Follow(kept.object)) kept.watch = nullptr;
    if (NeverChanges(kept.object)) kept.watch = nullptr;  // from now on
    return kept.watch || NeverChanges(kept.object);
  }

  Result<> Ask(const std::string& ns, const std::string& name, KeptObject& kept)
      REQUIRES(kept.busy) override {
    ASSIGN_OR_RETURN(ListedObject listed, ListObject(parts_, ns, name, ""));
    kept.object = std::move(listed.object);
    if (NeverChanges(kept.object)) return {};
    auto watch = ObjectWatch::Open(parts_, ns, name, listed.version);
    if (watch)
      kept.watch = std::move(*watch);
    else  // the list is a good answer; the next use lists again
      log::Debug("Cannot watch an object",
                 {{"resource", parts_.info.GroupResource()}, {"name", name}, {"error", watch.error()}});
    return {};
  }
};

}  // namespace

std::unique_ptr<ObjectReader> NewWatchReader(ReaderParts parts) {
  return std::make_unique<WatchReader>(std::move(parts));
}

}  // namespace keelson::kubelet
