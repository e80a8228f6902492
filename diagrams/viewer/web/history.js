/** The conversation as it stood after any record: message records are done and undone, one by one. */

import { list, number, string } from "./plain.js";

export class History {
  constructor() {
    this.records = [];
    this.undo = []; // of the records that are applied, how to take each back
    this.messages = [];
  }

  add(record) {
    this.records.push(record);
  }

  /** The messages after the record at `place`: each with its role and blocks, and the record that each block is from. */
  at(place) {
    while (this.undo.length > 0 && this.records[this.undo.length - 1].place > place) this.undo.pop()();
    while (this.undo.length < this.records.length && this.records[this.undo.length].place <= place) {
      this.undo.push(this.apply(this.records[this.undo.length]));
    }
    return this.messages;
  }

  apply(record) {
    const { messages } = this;
    const index = number(record.field("index"));
    const blocks = list(record.field("blocks")).map((skeleton) => ({ skeleton, record }));
    switch (record.field("op")) {
      case "join": {
        const message = { role: string(record.field("role")), record, blocks };
        messages.splice(index, 0, message);
        return () => messages.splice(messages.indexOf(message), 1);
      }
      case "extend": {
        const message = messages[index];
        if (message === undefined) return () => {};
        const before = message.blocks;
        message.blocks = [...before, ...blocks];
        return () => {
          message.blocks = before;
        };
      }
      case "leave": {
        const [message] = messages.splice(index, 1);
        return message === undefined ? () => {} : () => messages.splice(index, 0, message);
      }
      default:
        return () => {};
    }
  }
}
