// The PersistentVolumeClaims of a StatefulSet's pods.
#pragma once

#include "controlplane/controllers/statefulset/identity.h"
#include "lib/client/events.h"
#include "lib/client/informer.h"
#include "lib/client/rest.h"

namespace keelson::controllers {

class SetClaims {  // thread safe
 public:
  SetClaims(client::InformerFactory& informers, client::EventRecorder& events);

  // Makes those that are missing. kConflict when one is on its way out: it has to go first.
  Result<> Create(const client::RestClient& api, const appsv1::StatefulSet& set, const corev1::Pod& pod,
                  int32_t ordinal);
  // Gives claims the owners that the set's retention policy asks for.
  Result<> Settle(const client::RestClient& api, const appsv1::StatefulSet& set, const corev1::Pod& pod,
                  int32_t ordinal);
  // A claim will be removed with an earlier pod: the next one waits for a fresh one.
  bool AnyStale(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal) const;

  client::Informer<corev1::PersistentVolumeClaim>& store() { return claims_; }

 private:
  Result<> CreateOne(const client::RestClient& api, const appsv1::StatefulSet& set, const corev1::Pod& pod,
                     int32_t ordinal, corev1::PersistentVolumeClaim claim);

  client::EventRecorder& events_;
  client::Informer<corev1::PersistentVolumeClaim>& claims_;
};

}  // namespace keelson::controllers
