// The resources that are encrypted in etcd, and their providers: the current --encryption-provider-config.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "controlplane/storage/encryption/config.h"
#include "controlplane/storage/encryption/transformer.h"
#include "lib/api/scheme.h"
#include "lib/base/clock.h"

namespace keelson::storage {

class Encryption {  // thread safe
 public:
  // Reads the file. A KMS that does not answer is no error: requests that need it fail until it answers.
  // `etcd_prefix` replaces "/registry" in etcd's keys, to which values are bound.
  static Result<std::unique_ptr<Encryption>> Load(std::string path, std::string etcd_prefix = "/registry");
  ~Encryption();

  // null: not encrypted. `info` is a main resource.
  TransformerPtr Of(const api::ResourceInfo& info) const;
  // Whether all KMS providers answer.
  Result<> Health() const;
  bool has_kms() const;

  // Keeps the keys of KMS providers fresh and, with `reload`, applies changes of the file. An invalid file, or one
  // with a KMS that does not answer, is logged and has no effect. Calls changed() after each applied change.
  void Run(bool reload, const std::function<void()>& changed, std::stop_token stop);

 private:
  struct Table;
  Encryption(std::string path, std::string etcd_prefix);
  Result<std::shared_ptr<const Table>> Read(std::string& text) const;
  // Reads the file once. Returns whether it was applied.
  bool CheckFile();

  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace keelson::storage
