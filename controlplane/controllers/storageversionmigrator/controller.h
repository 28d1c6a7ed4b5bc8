// Writes all stored objects of a resource again, for each StorageVersionMigration, so that they are stored in today's storage
// version and with today's encryption key (pkg/controller/storageversionmigrator of kube-controller-manager).
//
// A migration lives in its object and in the condition StorageMigrating of the resource's definition, so that a controller
// that starts anew goes on with it; what is written already costs a request each, and no write. Migrations of one resource
// follow each other.
#pragma once

#include "controlplane/controllers/common/controller.h"
#include "controlplane/controllers/storageversionmigrator/plan.h"

namespace keelson::controllers {

class StorageVersionMigrator : public Controller {
 public:
  StorageVersionMigrator(client::RestClient api, client::InformerFactory& informers,
                         client::EventRecorder& events, Clock& clock);
  // `key`: "RESOURCE.GROUP"; "RESOURCE." for the core group.
  Result<Requeue> Reconcile(const std::string& key, std::stop_token stop) override;

 private:
  Migrations Of(const std::string& key) const;
  Result<> CleanUp(const client::RestClient& api, const StorageVersionMigration& migration);
  Result<> Begin(const client::RestClient& api, const StorageVersionMigration& migration);
  Result<Requeue> Mark(const client::RestClient& api, const StorageVersionMigration& migration,
                       std::stop_token stop);
  Result<> Migrate(const client::RestClient& api, const StorageVersionMigration& migration,
                   std::stop_token stop);
  Result<> Finish(const client::RestClient& api, StorageVersionMigration migration, std::string_view type,
                  std::string_view message);

  const client::RestClient api_;
  client::Informer<StorageVersionMigration>& migrations_;
};

}  // namespace keelson::controllers
