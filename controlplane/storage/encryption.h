// Which resources are encrypted in etcd, and how: --encryption-provider-config, as it is now.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "controlplane/storage/encryption_config.h"
#include "controlplane/storage/transformer.h"
#include "lib/api/scheme.h"
#include "lib/base/clock.h"

namespace keelson::storage {

class Encryption {  // thread safe
 public:
  // Reads the file. A KMS that does not answer is no error: what it is needed for fails until it does.
  // `etcd_prefix` is what stands in etcd where keys here say "/registry": values are bound to etcd's own
  // keys.
  static Result<std::unique_ptr<Encryption>> Load(std::string path, std::string etcd_prefix = "/registry");
  ~Encryption();

  // null: stored as it is. `info` is a resource that others are stored as.
  TransformerPtr Of(const api::ResourceInfo& info) const;
  // Whether all KMS providers answer.
  Result<> Health() const;
  bool has_kms() const;

  // Keeps KMS providers' keys fresh and, with `reload`, takes up changes of the file: those that make no
  // sense, or name a KMS that does not answer, are logged and leave things as they are. changed() after
  // each one that was taken up.
  void Run(bool reload, const std::function<void()>& changed, std::stop_token stop);

 private:
  struct Table;
  Encryption(std::string path, std::string etcd_prefix);
  Result<std::shared_ptr<const Table>> Read(std::string& text) const;
  // Once; whether the file was taken up.
  bool CheckFile();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::storage
