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

  // Creates missing claims. kConflict when a claim is being deleted: its successor must wait.
  Result<> Create(const client::RestClient& api, const appsv1::StatefulSet& set, const corev1::Pod& pod,
                  int32_t ordinal);
  // Sets the claims' owner references as persistentVolumeClaimRetentionPolicy requires.
  Result<> Settle(const client::RestClient& api, const appsv1::StatefulSet& set, const corev1::Pod& pod,
                  int32_t ordinal);
  // True when a claim is about to be deleted with an earlier pod of the same name: the new pod must wait.
  bool AnyStale(const appsv1::StatefulSet& set, const corev1::Pod& pod, int32_t ordinal) const;

  client::Informer<corev1::PersistentVolumeClaim>& store() { return claims_; }

 private:
  Result<> CreateOne(const client::RestClient& api, const appsv1::StatefulSet& set, const corev1::Pod& pod,
                     int32_t ordinal, corev1::PersistentVolumeClaim claim);

  client::EventRecorder& events_;
  client::Informer<corev1::PersistentVolumeClaim>& claims_;
};

}  // namespace keelson::controllers
