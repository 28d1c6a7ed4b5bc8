// Records Events. Deduplicates by object, reason and message, counts, and sends in the background; losing
// an event never affects the caller.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "lib/base/clock.h"
#include "lib/client/rest.h"

namespace keelson::client {

class EventRecorder {  // thread safe
 public:
  EventRecorder(RestClient api, std::string component, std::string host = "", Clock& clock = Clock::Real());
  ~EventRecorder();
  // `type`: Normal or Warning. Returns at once; drops the event when the queue is full.
  void Record(const google::protobuf::Message& object, std::string_view type, std::string_view reason,
              std::string message);
  void Record(const corev1::ObjectReference& object, std::string_view type, std::string_view reason,
              std::string message);
  // Sends queued events until `stop`.
  void Run(std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::client
