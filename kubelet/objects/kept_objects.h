// What the strategies that keep objects have in common: who comes while the API server is asked gets the same
// answer, what is known stays good enough while it does not answer, and the memory that all of it may take.
#pragma once

#include <atomic>
#include <map>

#include "kubelet/objects/object_watch.h"
#include "kubelet/objects/reader.h"
#include "lib/base/mutex.h"

namespace keelson::kubelet {

struct KeptObject {
  Mutex busy;                                     // held while the API server is asked
  ObjectReader::Object object GUARDED_BY(busy);   // null: not known, or not there
  std::optional<Error> failure GUARDED_BY(busy);  // of the last question
  SteadyTime read GUARDED_BY(busy){};
  std::unique_ptr<ObjectWatch> watch GUARDED_BY(busy);
  std::atomic<uint64_t> questions = 0;
  std::atomic<bool> renew = false;  // what is known was read for pods that came earlier
  std::atomic<size_t> bytes = 0;
  SteadyTime used{};  // guarded by the mutex of KeptObjects
};

class KeptObjects : public ObjectReader {
 public:
  explicit KeptObjects(ReaderParts parts) : parts_(std::move(parts)) {}

  Result<Object> Get(const std::string& ns, const std::string& name) final;
  void Released(const std::string& ns, const std::string& name) final;

 protected:
  // Whether what is known, that there is no object included, needs no question.
  virtual bool IsFresh(KeptObject& kept) REQUIRES(kept.busy) = 0;
  // Asks, and makes kept.object what the answer says.
  virtual Result<> Ask(const std::string& ns, const std::string& name, KeptObject& kept)
      REQUIRES(kept.busy) = 0;
  std::shared_ptr<KeptObject> Find(const std::string& ns, const std::string& name);  // or null

  static bool NeverChanges(const Object& object);  // false for null
  const ReaderParts parts_;

 private:
  std::shared_ptr<KeptObject> Use(const std::string& ns, const std::string& name);
  Result<Object> Known(const KeptObject& kept, const std::string& name) const REQUIRES(kept.busy);
  void DropUnused(const KeptObject& just_used);

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<KeptObject>> kept_ GUARDED_BY(mutex_);
};

}  // namespace keelson::kubelet
