// List and watch of one object. No thread waits for events: they are read when a caller asks, so that hundreds of
// watches need no threads. Each watch ends within ten minutes, and is restarted only if a caller asks again.
#pragma once

#include <memory>
#include <string>

#include "kubelet/objects/object_store.h"
#include "lib/client/watch.h"

namespace keelson::kubelet {

struct ListedObject {
  ObjectStore::Object object;  // null: not found
  std::string version;         // resourceVersion of the list, where a watch starts
};

// Lists the object by name. `version`: "" for a consistent read, "0" for the API server's watch cache.
Result<ListedObject> ListObject(const ObjectStoreDependencies& dependencies, const std::string& ns,
                                const std::string& name, const std::string& version);

class ObjectWatch {  // one thread at a time
 public:
  // `dependencies` has to outlive the watch.
  static Result<std::unique_ptr<ObjectWatch>> Open(const ObjectStoreDependencies& dependencies,
                                                   const std::string& ns, const std::string& name,
                                                   const std::string& version);
  // Applies the events that have arrived to `object`, without blocking. False: the watch has ended; what arrived
  // before that has been applied.
  bool Follow(ObjectStore::Object& object);

 private:
  ObjectWatch(const ObjectStoreDependencies& dependencies, std::unique_ptr<client::ApiStream> stream);
  Result<> TakeFrames(ObjectStore::Object& object);

  const ObjectStoreDependencies& deps_;
  std::unique_ptr<client::ApiStream> stream_;
  client::FrameReader frames_;
  SteadyTime heard_;
};

}  // namespace keelson::kubelet
