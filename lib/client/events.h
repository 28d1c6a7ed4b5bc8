// Records Events (core/v1 through events.k8s.io's series rules are the server's business): deduplicated by
// object, reason and message, counted, and sent in the background; losing one never hurts the caller.
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
  // type: Normal or Warning. Returns at once.
  void Record(const google::protobuf::Message& object, std::string_view type, std::string_view reason,
              std::string message);
  void Record(const corev1::ObjectReference& object, std::string_view type, std::string_view reason,
              std::string message);
  // Sends what is queued until `stop`.
  void Run(std::stop_token stop);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::client
