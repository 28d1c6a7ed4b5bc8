// For tests: an AddressWriter that runs, and clients whose answers it holds.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "lib/base/mutex.h"
#include "proxy/dns/address_writer.h"

namespace keelson::proxy::dns {

class RunningWriter {
 public:
  explicit RunningWriter(std::unique_ptr<AddressWriter> writer)
      : writer_(std::move(writer)), thread_([this](std::stop_token stop) { (void)writer_->Run(stop); }) {}

  AddressWriter& writer() { return *writer_; }
  // Holds an answer, and waits until it is sent; `at_once` is called on the thread that sends.
  void Deliver(
      const std::string& answer, const std::function<void()>& at_once = [] {}) {
    Mutex mutex;
    CondVar sent;
    std::string got;
    writer_->Hold(answer, [&](std::string_view bytes) {
      at_once();
      MutexLock lock(mutex);
      got = bytes;
      sent.notify_all();
    });
    MutexLock lock(mutex);
    while (got.empty()) sent.wait(mutex);
  }
  void Stop() {
    thread_.request_stop();
    thread_.join();
  }

 private:
  std::unique_ptr<AddressWriter> writer_;
  std::jthread thread_;
};

}  // namespace keelson::proxy::dns
