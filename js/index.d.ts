declare const fastSync: any;
export default fastSync;
