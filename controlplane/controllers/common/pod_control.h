// Pods that a controller makes and removes for an owner, and the events that tell of it.
#pragma once

#include "lib/api/types.h"
#include "lib/client/events.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

// The pod that a template makes: named after the owner, controlled by it.
corev1::Pod PodFromTemplate(const corev1::PodTemplateSpec& source, const google::protobuf::Message& owner);

class PodControl {  // thread safe
 public:
  explicit PodControl(client::EventRecorder& events) : events_(events) {}
  // A namespace on its way out refuses without an event (IsNamespaceTerminating()).
  Result<corev1::Pod> Create(const client::RestClient& api, const google::protobuf::Message& owner,
                             const corev1::Pod& pod);
  // A pod that is gone already is kNotFound, without an event.
  Result<> Delete(const client::RestClient& api, const google::protobuf::Message& owner,
                  const corev1::Pod& pod);

 private:
  client::EventRecorder& events_;
};

}  // namespace keelson::controllers
