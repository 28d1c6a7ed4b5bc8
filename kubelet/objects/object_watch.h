// One object by list and watch. Nobody waits at the watch: what has come is taken when somebody asks, so that
// hundreds of them need no thread. Each ends by itself within ten minutes, and costs nothing from then on
// unless it is asked for again.
#pragma once

#include <memory>
#include <string>

#include "kubelet/objects/reader.h"
#include "lib/client/watch.h"

namespace keelson::kubelet {

struct ListedObject {
  ObjectReader::Object object;  // null: there is none
  std::string version;          // of the list: where a watch goes on
};

// `version`: "" for what the API server knows for certain, "0" for what it has at hand.
Result<ListedObject> ListObject(const ReaderParts& parts, const std::string& ns, const std::string& name,
                                const std::string& version);

class ObjectWatch {
 public:
  static Result<std::unique_ptr<ObjectWatch>> Open(const ReaderParts& parts, const std::string& ns,
                                                   const std::string& name, const std::string& version);
  // Makes `object` what the watch has told, without waiting. False: it has ended, and tells no more.
  bool Follow(ObjectReader::Object& object);

 private:
  ObjectWatch(const ReaderParts& parts, std::unique_ptr<client::ApiStream> stream);
  Result<> TakeFrames(ObjectReader::Object& object);

  const ReaderParts& parts_;
  std::unique_ptr<client::ApiStream> stream_;
  client::FrameReader frames_;
  SteadyTime heard_;
};

}  // namespace keelson::kubelet
