// Creates and deletes pods for an owner, and records events about it.
#pragma once

#include "lib/api/types.h"
#include "lib/client/events.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

// Returns a pod from a template: generateName from the owner's name, and the owner as its controller.
corev1::Pod PodFromTemplate(const corev1::PodTemplateSpec& source, const google::protobuf::Message& owner);

class PodControl {  // thread safe
 public:
  explicit PodControl(client::EventRecorder& events) : events_(events) {}
  // Records an event on the owner, except for errors with IsNamespaceTerminating().
  Result<corev1::Pod> Create(const client::RestClient& api, const google::protobuf::Message& owner,
                             const corev1::Pod& pod);
  // Records an event on the owner. A missing pod is kNotFound, without an event.
  Result<> Delete(const client::RestClient& api, const google::protobuf::Message& owner,
                  const corev1::Pod& pod);

 private:
  client::EventRecorder& events_;
};

}  // namespace keelson::controllers
